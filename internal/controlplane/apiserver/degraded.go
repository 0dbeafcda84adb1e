package apiserver

import (
	"bytes"
	"net/http"
)

// degradedNotes returns the function that collects all reasons why the server is degraded.
func degradedNotes(full func() string, others func() []string) func() []string {
	return func() (notes []string) {
		if note := full(); note != "" {
			notes = append(notes, note)
		}
		if others != nil {
			notes = append(notes, others()...)
		}
		return notes
	}
}

// reportDegraded adds the reasons why a ready server rejects writes, or why its ensemble tolerates
// fewer failures than it should, to its health pages: one line each. Such a server stays ready: a
// client that fills the store must not take the traffic of all others away, delete calls must still
// reach the server, and a member without a replica still serves its clients.
func reportDegraded(degraded func() []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" && r.URL.Path != "/healthz" {
			next.ServeHTTP(w, r)
			return
		}
		notes := degraded()
		if len(notes) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		page := &bufferedPage{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(page, r)
		w.Header().Del("Content-Length")
		w.WriteHeader(page.status)
		for _, note := range notes {
			page.body.WriteString("\ndegraded: " + note)
		}
		page.body.WriteByte('\n')
		_, _ = w.Write(page.body.Bytes()) // the client may have disconnected
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
