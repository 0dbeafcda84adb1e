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

// frontHandler is what the ports serve: refusals while the server starts, then the
// surfaces. A call that came too early must not be told that what it asks for is
// not there, since clients remember that.
type frontHandler struct{ current atomic.Pointer[http.Handler] }

// serve has the ports served by another handler from now on.
func (f *frontHandler) serve(by http.Handler) { f.current.Store(&by) }

// ServeHTTP implements http.Handler.
func (f *frontHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*f.current.Load()).ServeHTTP(w, r)
}

// answer serves the ports from now on. Until the last phase is done every call is
// refused as one that came too early, in the form of its surface.
func (s *server) answer(context.Context) error {
	secure, files, err := tlsConfig(s.cfg, s.log)
	if err != nil {
		return err
	}
	s.certs, s.tlsConfig = files, secure
	s.front.serve(newRouter(mounts(refusingHandlers(web.ErrStarting, http.HandlerFunc(s.startingHealth)), s.cors()),
		s.cors()))
	bounded := web.BoundHeaders(web.BoundBodies(&s.front, s.cfg.Timeouts.ReadBody.Std()), int(s.cfg.Limits.HeaderSize))
	main := web.MiddlewareUntil(bounded, s.access, s.metrics, &s.ending)
	refused := &refusals{routes: &s.front, log: s.access, observer: s.metrics}
	s.ports.serveMain(s.cfg, main, refused, secure, s.log, s.failed)
	return nil
}

// refusingHandlers are the surfaces of a server that starts, or that may not answer;
// only its health and the console can be asked for.
func refusingHandlers(why error, health http.Handler) *handlers {
	refuse := func(write web.ErrorWriter) http.Handler {
		return web.Handle(func(http.ResponseWriter, *http.Request) error { return why }, write)
	}
	registry := refuse(registryapi.Refuse)
	return &handlers{
		messages: refuse(brokerhttp.Refuse), admin: refuse(brokerhttp.Refuse), registry: registry,
		streamRegistry: registry, root: registry,
		audit: refuse(auditapi.Refuse), system: refuse(systemapi.Refuse), tokens: refuse(tokenapi.Refuse),
		pages: refuse(signinapi.Refuse), resources: refuse(apiserver.Refuse), health: health,
		console: consolePages(),
	}
}

// startingHealth answers for the health pages before there is a resource API to
// do so: the process lives, and is not ready.
func (s *server) startingHealth(w http.ResponseWriter, r *http.Request) {
	text := web.ErrStarting.Error()
	if waits := s.waits.Load(); waits != nil {
		text = "the server is starting and waits for " + *waits
	}
	writeHealth(w, r, text)
}

// writeHealth answers for the health pages of a process that lives and is not ready.
func writeHealth(w http.ResponseWriter, r *http.Request, text string) {
	web.RecordOf(r.Context()).Expected = true
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.URL.Path == "/livez" || strings.HasPrefix(r.URL.Path, "/livez/") {
		_, _ = io.WriteString(w, "ok") // the client may be gone
		return
	}
	h.Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, text+"\n") // the client may be gone
}
