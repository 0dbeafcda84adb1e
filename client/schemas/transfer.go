package schemas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"freshet/client"
)

// maxImport bounds the file that Import reads into memory.
const maxImport = 1 << 30

// Export writes the whole registry as lines of JSON, which Import takes. It needs
// the right to read all of it. What is written when it fails is not complete.
func (r *Registry) Export(ctx context.Context, w io.Writer) error {
	if _, err := r.Mode(ctx); err != nil { // it also finds out where the registry is
		return err
	}
	prefix := "/stream"
	if r.atRoot.Load() {
		prefix = ""
	}
	response, err := r.c.Stream(ctx,
		&client.Request{Method: http.MethodGet, Path: r.c.ClusterPath(prefix + "/registry/v1alpha1/export")})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("the export is not complete: %w", err)
	}
	return nil
}

// Imported says what an import has done.
type Imported struct {
	Versions int `json:"versions"` // that were written
	Levels   int `json:"levels"`   // that were written
	Known    int `json:"known"`    // lines that said what was so already
}

// Import reads an export, keeps ids and versions and passes over what is there.
// It can be repeated.
func (r *Registry) Import(ctx context.Context, file io.Reader) (*Imported, error) {
	text, err := io.ReadAll(io.LimitReader(file, maxImport+1))
	if err != nil {
		return nil, fmt.Errorf("reading the export: %w", err)
	}
	if len(text) > maxImport {
		return nil, errors.New("the export has more than 1 GiB")
	}
	response, err := r.do(ctx, &client.Request{
		Method: http.MethodPost, Path: "/registry/v1alpha1/import", Body: text, Idempotent: true,
		Header: http.Header{"Content-Type": {"application/json"}},
	})
	if err != nil {
		return nil, err
	}
	done := new(Imported)
	return done, response.JSON(done)
}
