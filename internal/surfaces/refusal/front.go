package refusal

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"freshet/internal/base/web"
)

// Front is the handler of the ports. It rejects requests while the server starts, then it
// serves the surfaces. Early requests must not get 404, because clients cache it.
type Front struct{ current atomic.Pointer[http.Handler] }

// Serve replaces the handler. It must be called before the first request.
func (f *Front) Serve(by http.Handler) { f.current.Store(&by) }

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*f.current.Load()).ServeHTTP(w, r)
}

// Starting returns the handler of the health pages of a starting server: the process is alive,
// but not ready. waitsFor is what the server waits for, if that is known.
func Starting(waitsFor *atomic.Pointer[string]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := web.ErrStarting.Error()
		if waits := waitsFor.Load(); waits != nil {
			text = "server is starting and waits for " + *waits
		}
		WriteHealth(w, r, text)
	})
}

// WriteHealth serves the health pages of a process that is alive but not ready. text is the
// reason.
func WriteHealth(w http.ResponseWriter, r *http.Request, text string) {
	web.RecordOf(r.Context()).LogAtDebug = true
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.URL.Path == "/livez" || strings.HasPrefix(r.URL.Path, "/livez/") {
		_, _ = io.WriteString(w, "ok") // fails only if the client disconnected
		return
	}
	h.Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, text+"\n") // fails only if the client disconnected
}
