package apiserver

import (
	"bytes"
	"io"
	"net/http"
)

// tellDegraded has the health pages of a ready server say what it refuses to do.
// Such a server stays ready: whoever fills the store must not be able to take the
// traffic of everybody else away, and deleting has to reach it.
func tellDegraded(degraded func() string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" && r.URL.Path != "/healthz" {
			next.ServeHTTP(w, r)
			return
		}
		note := degraded()
		if note == "" {
			next.ServeHTTP(w, r)
			return
		}
		page := &heldPage{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(page, r)
		w.Header().Del("Content-Length")
		w.WriteHeader(page.status)
		_, _ = w.Write(page.body.Bytes())                  // the client may be gone
		_, _ = io.WriteString(w, "\ndegraded: "+note+"\n") // the client may be gone
	})
}

// heldPage keeps a page back that something is added to.
type heldPage struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (p *heldPage) WriteHeader(status int) { p.status = status }

func (p *heldPage) Write(b []byte) (int, error) { return p.body.Write(b) }
