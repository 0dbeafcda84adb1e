package schemas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"freshet.dev/client"
)

// maxImport is the maximum size of the file that Import reads into memory.
const maxImport = 1 << 30

// Export writes the whole registry as lines of JSON for Import. It needs the permission to
// read all subjects. If it fails, the written part is not complete.
func (r *Registry) Export(ctx context.Context, w io.Writer) error {
	if _, err := r.Mode(ctx); err != nil { // this also sets atRoot
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
		return fmt.Errorf("reading the export, which is not complete: %w", err)
	}
	return nil
}

// Imported is the result of an import.
type Imported struct {
	Versions int `json:"versions"` // number of imported versions
	Levels   int `json:"levels"`   // number of imported compatibility levels
	Known    int `json:"known"`    // number of lines that the registry already had
}

// Import imports an export with its ids and versions. It skips existing entries, so it can be
// repeated.
func (r *Registry) Import(ctx context.Context, file io.Reader) (*Imported, error) {
	text, err := io.ReadAll(io.LimitReader(file, maxImport+1))
	if err != nil {
		return nil, fmt.Errorf("reading the export: %w", err)
	}
	if len(text) > maxImport {
		return nil, errors.New("export is larger than 1 GiB")
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
