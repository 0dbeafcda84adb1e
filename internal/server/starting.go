package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"freshet/internal/base/web"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/surfaces/auditapi"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/registryapi"
	"freshet/internal/surfaces/signinapi"
	"freshet/internal/surfaces/systemapi"
	"freshet/internal/surfaces/tokenapi"
)

// frontHandler is the handler of the ports: it rejects requests while the server starts, then
// it serves the surfaces. Early requests must not get 404, because clients cache it.
type frontHandler struct{ current atomic.Pointer[http.Handler] }

// serve replaces the handler.
func (f *frontHandler) serve(by http.Handler) { f.current.Store(&by) }

// ServeHTTP implements http.Handler.
func (f *frontHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*f.current.Load()).ServeHTTP(w, r)
}

// serveStarting starts to serve the ports. Until the last phase is done, every request is rejected
// with web.ErrStarting in the error format of its surface.
func (s *server) serveStarting(context.Context) error {
	secure, files, err := tlsConfig(s.cfg, s.log)
	if err != nil {
		return err
	}
	s.certs, s.tlsConfig = files, secure
	s.front.serve(newRouter(mounts(refusingHandlers(web.ErrStarting, http.HandlerFunc(s.startingHealth)), s.cors()),
		s.cors()))
	bounded := web.LimitHeaders(web.LimitBodyTime(&s.front, s.cfg.Timeouts.ReadBody.Std()),
		int(s.cfg.Limits.HeaderSize))
	main := web.MiddlewareWithShutdown(bounded, s.access, s.metrics, &s.ending)
	refused := &refusals{routes: &s.front, log: s.access, observer: s.metrics}
	s.ports.serveMain(s.cfg, main, refused, secure, s.log, s.failed)
	return nil
}

// refusingHandlers returns surfaces that reject all requests with the error why, for a server
// that is starting or has lost its lease. Only health and the console work.
func refusingHandlers(why error, health http.Handler) *handlers {
	refuse := func(write web.ErrorWriter) http.Handler {
		return web.Handle(func(http.ResponseWriter, *http.Request) error { return why }, write)
	}
	registry := refuse(registryapi.Refuse)
	return &handlers{
		messages: refuse(brokerhttp.Refuse), admin: refuse(brokerhttp.Refuse), registry: registry,
		prefixedRegistry: registry, root: registry,
		audit: refuse(auditapi.Refuse), system: refuse(systemapi.Refuse), tokens: refuse(tokenapi.Refuse),
		pages: refuse(signinapi.Refuse), resources: refuse(apiserver.RespondUnavailable), health: health,
		console: consolePages(),
	}
}

// startingHealth serves the health pages until the resource API does: the process is alive,
// but not ready.
func (s *server) startingHealth(w http.ResponseWriter, r *http.Request) {
	text := web.ErrStarting.Error()
	if waits := s.waitsFor.Load(); waits != nil {
		text = "server is starting and waits for " + *waits
	}
	writeHealth(w, r, text)
}

// writeHealth serves the health pages of a process that is alive but not ready.
func writeHealth(w http.ResponseWriter, r *http.Request, text string) {
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
