package server

import (
	"context"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"

	"freshet/internal/adminapi"
	"freshet/internal/auditapi"
	"freshet/internal/brokerhttp"
	"freshet/internal/config"
	"freshet/internal/dataplane"
	"freshet/internal/errs"
	"freshet/internal/messageapi"
	"freshet/internal/messaging"
	"freshet/internal/registryapi"
	"freshet/internal/surface"
	"freshet/internal/telemetry"
	"freshet/internal/tokenapi"
	"freshet/internal/web"
)

// openSurfaces builds the mux and starts answering. Readiness stays false until
// the last phase.
func (s *server) openSurfaces(context.Context) error {
	secure, err := tlsConfig(s.cfg, s.log)
	if err != nil {
		return err
	}
	routes, err := s.routes()
	if err != nil {
		return err
	}
	main := web.Middleware(web.BoundBodies(routes, s.cfg.Timeouts.ReadBody.Std()), s.log, s.metrics)
	s.ports.serve(s.cfg, main, s.opsMux(), secure, s.log, s.failed)
	return nil
}

// routes sends requests to their surface by path; each surface owns its unknown
// paths. The registry has the root, as its clients expect.
func (s *server) routes() (http.Handler, error) {
	options := s.surfaceOptions()
	tokens, err := s.tokens(options)
	if err != nil {
		return nil, err
	}
	clusters := s.clusterMounts(options)
	mounts := append(slices.Clone(clusters),
		at(clusterPattern, "clusters", clusterPath{newRouter(clusters)}),
		at(auditapi.Root+"/...", "audit", s.auditTrail(options)),
	)
	for _, pattern := range tokenapi.Patterns() {
		mounts = append(mounts, at(pattern, "token", tokens))
	}
	for _, path := range []string{"/apis", "/api", "/openapi", "/healthz", "/livez", "/readyz", "/version"} {
		mounts = append(mounts, at(path+"/...", "resources", s.api.Handler()))
	}
	return newRouter(mounts), nil
}

// clusterMounts are the surfaces of a cluster, wherever it answers.
func (s *server) clusterMounts(options surface.Options) []web.Route[mount] {
	messages := messageapi.New(messageapi.Options{
		Options: options, Resolver: s.brokers(), WriteTimeout: s.cfg.Timeouts.WriteBody.Std(),
	})
	admin := adminapi.New(adminapi.Options{Options: options, Resolver: s.brokers()})
	registry := func(atRoot bool) http.Handler {
		return registryapi.New(registryapi.Options{Options: options, Resolver: registries{s.plane, atRoot}})
	}
	return []web.Route[mount]{
		at("/admin/rest/...", "messages", messages),
		at("/admin/...", "messages", admin),
		at("/rest-stream/...", "messages", admin),
		at("/stream/...", "registry", stripSegments(1, registry(false))),
		at("/...", "registry", registry(true)),
	}
}

// surfaceOptions are what every surface asks.
func (s *server) surfaceOptions() surface.Options {
	return surface.Options{
		Authenticator: s.identity,
		Authorizer:    s.identity.policy,
		Auditor:       s,
		Limiter:       web.NewLimiter(s.cfg.Limits.RequestsInFlight, int64(s.cfg.Limits.BodyMemory)),
		CORS:          web.CORS{Origins: s.cfg.CORS.Origins},
	}
}

func (s *server) tokens(options surface.Options) (*tokenapi.API, error) {
	return tokenapi.New(tokenapi.Options{
		Issuer: s.identity.issuer, Directory: s.identity.directory, Sealer: s.identity.sealer,
		Audiences: s.identity.addresses, Instances: s.kinds.Instances(), Lifetime: s.cfg.Tokens.Lifetime.Std(),
		Limits:  tokenapi.Limits{Client: tokenapi.Rate{PerSecond: s.cfg.Limits.TokenRate, Burst: s.cfg.Limits.TokenBurst}},
		Auditor: options.Auditor, CORS: options.CORS,
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

// brokers finds the broker a request is for.
func (s *server) brokers() brokerhttp.Resolver {
	return surface.ResolverFunc[brokerhttp.Cluster](func(r *http.Request) (brokerhttp.Cluster, error) {
		c, err := findCluster(s.plane, r)
		if err != nil {
			return brokerhttp.Cluster{}, err
		}
		return brokerhttp.Cluster{Broker: c.Broker, Scope: c.Scope, Audiences: c.Audiences}, nil
	})
}

// registries finds the registry a request means: by cluster, and by where it
// asked. A standard cluster has its registry under /stream, the other types at
// the root, the default cluster at both (docs/spec/registry.md#address).
type registries struct {
	plane  *dataplane.Plane
	atRoot bool
}

var errNotHere = errs.New(errs.NotFound, "Not found")

// Resolve implements surface.Resolver.
func (g registries) Resolve(r *http.Request) (registryapi.Target, error) {
	c, err := findCluster(g.plane, r)
	if err != nil {
		return registryapi.Target{}, err
	}
	if c.RegistryAtRoot != g.atRoot && !g.plane.IsDefault(c) {
		return registryapi.Target{}, errNotHere
	}
	return registryapi.Target{Registry: c.Registry, Scope: c.Scope, Audiences: c.Audiences}, nil
}
