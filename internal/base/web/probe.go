package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
)

// Probe returns a check that requests a path from the handler of the server's ports, without a connection,
// so that limits of connections and other clients cannot fail the check.
func Probe(handler http.Handler, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
		if err != nil {
			return err
		}
		response := &probeResponse{header: http.Header{}, status: http.StatusOK}
		handler.ServeHTTP(response, request)
		if response.status != http.StatusOK {
			return fmt.Errorf("%s returned %d: %s", path, response.status, bytes.TrimSpace(response.text))
		}
		return nil
	}
}

// maxProbe limits the text of a probe's response that is logged.
const maxProbe = 1 << 10

// probeResponse keeps the status and the start of the text.
type probeResponse struct {
	header http.Header
	status int
	text   []byte
}

func (p *probeResponse) Header() http.Header    { return p.header }
func (p *probeResponse) WriteHeader(status int) { p.status = status }

func (p *probeResponse) Write(b []byte) (int, error) {
	p.text = append(p.text, b[:min(len(b), maxProbe-len(p.text))]...)
	return len(b), nil
}
