package server

import (
	"context"
	"net/http"
	"net/http/pprof"
	"strings"

	"freshet/internal/access"
	"freshet/internal/auditapi"
	"freshet/internal/config"
	"freshet/internal/dataplane"
	"freshet/internal/errs"
	"freshet/internal/identity"
	"freshet/internal/messageapi"
	"freshet/internal/messaging"
	"freshet/internal/registryapi"
	"freshet/internal/telemetry"
	"freshet/internal/tokenapi"
	"freshet/internal/web"
)

// openSurfaces builds the mux and starts answering. Readiness stays false until
// the last phase.
func (s *server) openSurfaces(context.Context) error {
	certs, err := openCertificates(s.cfg.Path("tls"), s.cfg.TLS.CertFile, s.cfg.TLS.KeyFile, s.certificateNames(), s.log)
	if err != nil {
		return err
	}
	routes, err := s.routes()
	if err != nil {
		return err
	}
	main := web.Middleware(web.BoundBodies(routes, s.cfg.Timeouts.ReadBody.Std()), s.log, s.metrics)
	s.ports.serve(s.cfg, main, s.opsMux(), certs.config(), s.log, s.failed)
	return nil
}

func (s *server) certificateNames() []string {
	names := []string{"localhost", "127.0.0.1", "::1", s.cfg.Domain, "*." + s.cfg.Domain, "*." + s.cfg.Admin.Organization + "." + s.cfg.Domain}
	return append(names, s.cfg.TLS.Names...)
}

// routes sends requests to their surface by path; each surface owns its unknown
// paths. The registry has the root, as its clients expect.
func (s *server) routes() (http.Handler, error) {
	cors := web.CORS{Origins: s.cfg.CORS.Origins}
	gate := web.NewGate(s.cfg.Limits.RequestsInFlight, int64(s.cfg.Limits.BodyMemory))
	messages := messageapi.New(messageapi.Options{
		Resolve: s.messageCluster, Verifier: s.identity, Policy: s.identity.policy, Auditor: s, CORS: cors,
		Gate: gate, WriteTimeout: s.cfg.Timeouts.WriteBody.Std(),
	})
	registry := func(atRoot bool) http.Handler {
		return registryapi.New(registryapi.Options{
			Resolver: registries{s.plane, atRoot}, Authenticator: registryAuth{s.identity},
			Authorizer: s.identity.policy, Auditor: s, CORS: cors, Gate: gate,
		})
	}
	tokens, err := s.tokens(cors)
	if err != nil {
		return nil, err
	}
	tokenMux := http.NewServeMux()
	tokens.Mount(tokenMux)
	r := &router{
		mounts: []mount{
			{"/admin", "messages", messages},
			{"/rest-stream", "messages", messages},
			{"/stream", "registry", http.StripPrefix("/stream", registry(false))},
			{"/oauth", "token", tokenMux},
			{"/.well-known", "token", tokenMux},
			{auditapi.Root, "audit", s.auditTrail(cors)},
		},
		fallback: mount{"", "registry", registry(true)},
	}
	for _, path := range []string{"/apis", "/api", "/openapi", "/healthz", "/livez", "/readyz", "/version"} {
		r.mounts = append(r.mounts, mount{path, "resources", s.api.Handler()})
	}
	return tokenapi.Normalize(r), nil
}

func (s *server) tokens(cors web.CORS) (*tokenapi.API, error) {
	return tokenapi.New(tokenapi.Options{
		Issuer: s.identity.issuer, Directory: s.identity.directory, Sealer: s.identity.sealer,
		Audiences: s.identity.addresses, Instances: s.kinds.Instances(), Lifetime: s.cfg.Tokens.Lifetime.Std(),
		Limits: tokenapi.Limits{Client: tokenapi.Rate{PerSecond: s.cfg.Limits.TokenRate, Burst: s.cfg.Limits.TokenBurst}},
		Audit:  s.record, CORS: cors,
	})
}

// opsMux is for whoever runs the server: metrics and profiles.
func (s *server) opsMux() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", s.metrics.Handler(telemetry.Library(s.log, "metrics")))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func (s *server) planeOptions() dataplane.Options {
	opts := dataplane.Options{
		Dir: s.cfg.Path("clusters"), Domain: s.cfg.Domain, Logger: s.log,
		DiskReserve: int64(s.cfg.Limits.DiskReserve), OpenTables: s.files.tables,
		Limits: messaging.Limits{
			MessageBytes: int(s.cfg.Limits.MessageBody),
			Wait:         s.cfg.Timeouts.ConsumeMax.Std(),
			Waiting:      s.cfg.Limits.WaitingConsumers,
		},
	}
	if s.cfg.DefaultCluster != config.Off {
		opts.DefaultOrganization, opts.DefaultName, _ = strings.Cut(s.cfg.DefaultCluster, "/")
	}
	return opts
}

// messageCluster implements messageapi.Resolver.
func (s *server) messageCluster(r *http.Request) (messageapi.Cluster, error) {
	c, err := s.plane.Find(r.Host)
	if err != nil {
		return messageapi.Cluster{}, err
	}
	return messageapi.Cluster{Broker: c.Broker, Scope: c.Scope, Audiences: c.Audiences}, nil
}

// registries finds the registry a request means: by host, and by where it
// asked. A standard cluster has its registry under /stream, the other types at
// the root, the default cluster at both (spec 3).
type registries struct {
	plane  *dataplane.Plane
	atRoot bool
}

var errNotHere = errs.New(errs.NotFound, "Not found")

// Resolve implements registryapi.Resolver.
func (g registries) Resolve(r *http.Request) (registryapi.Target, error) {
	c, err := g.plane.Find(r.Host)
	if err != nil {
		return registryapi.Target{}, err
	}
	if c.RegistryAtRoot() != g.atRoot && !g.plane.IsDefault(c) {
		return registryapi.Target{}, errNotHere
	}
	return registryapi.Target{Registry: c.Registry, Scope: c.Scope}, nil
}

// registryAuth lets the registry ask identity.
type registryAuth struct{ identities *identities }

// Authenticate implements registryapi.Authenticator.
func (a registryAuth) Authenticate(ctx context.Context, token string, target access.Scope) (*identity.Principal, error) {
	return a.identities.Verify(ctx, token,
		identity.InstanceAudience(target.Organization, target.Instance), identity.OrganizationAudience(target.Organization))
}
