package apiserver

import (
	"bytes"
	"io"
	"net/http"
)

// reportDegraded adds the reason why a ready server rejects writes to its health pages. Such a server
// stays ready: a client that fills the store must not take the traffic of all others away, and
// delete calls must still reach the server.
func reportDegraded(degraded func() string, next http.Handler) http.Handler {
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
		page := &bufferedPage{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(page, r)
		w.Header().Del("Content-Length")
		w.WriteHeader(page.status)
		_, _ = w.Write(page.body.Bytes())                  // the client may have disconnected
		_, _ = io.WriteString(w, "\ndegraded: "+note+"\n") // the client may have disconnected
	})
}

// bufferedPage buffers a page to which text is appended.
type bufferedPage struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (p *bufferedPage) WriteHeader(status int) { p.status = status }

func (p *bufferedPage) Write(b []byte) (int, error) { return p.body.Write(b) }
