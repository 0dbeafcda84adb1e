package server

import (
	"context"
	"net/http"

	"freshet/internal/base/web"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/ops/certificates"
	"freshet/internal/surfaces/auditapi"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/refusal"
	"freshet/internal/surfaces/registryapi"
	"freshet/internal/surfaces/signinapi"
	"freshet/internal/surfaces/systemapi"
	"freshet/internal/surfaces/tokenapi"
)

// serveStarting starts to serve the ports. Until the last phase is done, every request is rejected
// with web.ErrStarting in the error format of its surface.
func (s *server) serveStarting(context.Context) error {
	secure, files, err := certificates.Open(certificates.Options{
		CertFile: s.cfg.TLS.CertFile, KeyFile: s.cfg.TLS.KeyFile,
		Dir: s.cfg.Path("tls"), Domain: s.cfg.Domain, Names: s.cfg.CertificateNames(), Log: s.log,
	})
	if err != nil {
		return err
	}
	s.certs, s.tlsConfig = files, secure
	s.front.Serve(newRouter(mounts(refusingHandlers(web.ErrStarting, refusal.Starting(&s.waitsFor)), s.cors()),
		s.cors()))
	bounded := web.LimitHeaders(web.LimitBodyTime(&s.front, s.cfg.Timeouts.ReadBody.Std()),
		int(s.cfg.Limits.HeaderSize))
	main := web.MiddlewareWithShutdown(bounded, s.access, s.metrics, &s.ending)
	s.ports.ServeMain(main, &refusal.Malformed{Routes: &s.front, Log: s.access, Observer: s.metrics}, secure)
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
