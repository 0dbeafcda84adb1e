package server

import (
	"bytes"
	"context"
	"net/http"
	"net/http/pprof"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/config"
	"freshet/internal/dataplane"
	"freshet/internal/ops/telemetry"
	"freshet/internal/surfaces/adminapi"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/messageapi"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/registryapi"
	"freshet/internal/surfaces/systemapi"
	"freshet/internal/surfaces/tokenapi"
)

// openSurfaces builds the surfaces. Until the last phase is done, callers get no
// further than the health pages.
func (s *server) openSurfaces(context.Context) (err error) {
	surfaces, err := s.surfaces()
	if err != nil {
		return err
	}
	s.routes = s.whileAlive(newRouter(mounts(surfaces, s.cors()), s.cors()))
	s.front.serve(newRouter(mounts(refusingHandlers(web.ErrStarting, surfaces.health), s.cors()), s.cors()))
	s.ports.serveOps(s.cfg, s.opsMux(), s.log, s.failed)
	return nil
}

// surfaces makes the handlers of all surfaces.
func (s *server) surfaces() (*handlers, error) {
	options := s.surfaceOptions()
	messages := messageapi.New(messageapi.Options{
		Options: options, Resolver: s.brokers(false), WriteTimeout: s.cfg.Timeouts.WriteBody.Std(),
	})
	admin := adminapi.New(adminapi.Options{Options: options, Resolver: s.brokers(true), Accounts: s.identity.directory})
	registry := func(atRoot bool) http.Handler {
		return registryapi.New(registryapi.Options{Options: options, Resolver: registries{s.plane, atRoot}})
	}
	tokens, err := s.tokens(options)
	if err != nil {
		return nil, err
	}
	pages, err := s.signInPages(options)
	if err != nil {
		return nil, err
	}
	rootRegistry := registry(true)
	return &handlers{
		messages: messages, admin: admin,
		root: frontPage(rootRegistry), registry: rootRegistry, streamRegistry: stripSegments(1, registry(false)),
		audit: s.auditTrail(options), system: s.system(options), tokens: tokens, pages: pages,
		resources: s.room.keepRoom(s.api.Handler()), health: s.api.Handler(),
		console: consolePages(),
	}, nil
}

// cors is who may call from pages of other origins, on every surface.
func (s *server) cors() web.CORS { return web.CORS{Origins: s.cfg.CORS.Origins} }

// surfaceOptions are what every surface asks.
func (s *server) surfaceOptions() pipeline.Options {
	return pipeline.Options{
		Authenticator: s.identity,
		Authorizer:    s.identity.policy,
		Auditor:       s,
		Limiter:       s.limiter,
	}
}

// system tells callers about the server.
func (s *server) system(options pipeline.Options) http.Handler {
	return systemapi.New(systemapi.Options{
		Options: options, Audiences: s.identity.audiences, Metrics: s.metrics, Group: groupStatus{s},
		Configuration: func() ([]byte, error) {
			var text bytes.Buffer
			err := config.Print(&text, s.settings())
			return text.Bytes(), err
		},
	})
}

func (s *server) tokens(options pipeline.Options) (*tokenapi.API, error) {
	return tokenapi.New(tokenapi.Options{
		Issuer: s.identity.issuer, Directory: s.identity.directory, Sealer: s.identity.sealer,
		Audiences: s.identity.addresses, Instances: s.kinds.Instances(), Lifetime: s.cfg.Tokens.Lifetime.Std(),
		Limits: tokenapi.Limits{Client: tokenapi.Rate{
			PerSecond: s.cfg.Limits.TokenRate,
			Burst:     s.cfg.Limits.TokenBurst,
		}},
		Auditor: options.Auditor,
		People:  s.people, Authenticator: options.Authenticator, Accepted: s.identity.audiences,
	})
}

// opsMux is for whoever runs the server: metrics, health and profiles.
func (s *server) opsMux() http.Handler {
	mux := http.NewServeMux()
	log := telemetry.Library(s.log, "metrics")
	mux.Handle("/metrics", s.metrics.Handler(log))
	mux.Handle("/metrics/all", s.metrics.HandlerForAll(log))
	for _, path := range []string{"/livez", "/readyz"} {
		mux.Handle(path, s.api.Handler())
		mux.Handle(path+"/", s.api.Handler())
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func (s *server) planeOptions() dataplane.Options {
	disk, _, err := diskBytes(s.cfg.Path("clusters"))
	if err != nil {
		disk, _, _ = diskBytes(s.cfg.DataDir) // before the first cluster; when nobody can say the engine chooses
	}
	opts := dataplane.Options{
		Dir: s.cfg.Path("clusters"), Domain: s.cfg.Domain, Logger: s.log,
		DiskReserve: config.ReserveOf(disk, s.cfg.Limits.DiskReserve), OpenTables: s.files.tables,
		Quotas: s.quotas,
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

// brokers finds the broker a request is for, with the way to its consumer groups if
// they are asked for.
func (s *server) brokers(withGroups bool) brokerhttp.Resolver {
	return pipeline.ResolverFunc[brokerhttp.Cluster](func(r *http.Request) (brokerhttp.Cluster, error) {
		c, err := findCluster(s.plane, r)
		if err != nil {
			return brokerhttp.Cluster{}, err
		}
		found := brokerhttp.Cluster{
			Broker: c.Broker, Scope: c.Scope, Audiences: c.Audiences, Quota: c.Quota,
			Owner: s.ownerOf(c), Coordinator: s.coordinatorOf(c), Coordinators: s.coordinatorsOf(c),
		}
		if withGroups && c.Stream {
			found.Groups = func(context.Context) (*groups.Coordinator, error) { return s.groupsOf(c) }
			found.Reading = s.readingOf(c)
		}
		return found, nil
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

// Resolve implements pipeline.Resolver.
func (g registries) Resolve(r *http.Request) (registryapi.Target, error) {
	c, err := findCluster(g.plane, r)
	if err != nil {
		return registryapi.Target{}, err
	}
	if c.RegistryAtRoot != g.atRoot && !g.plane.IsDefault(c) {
		return registryapi.Target{}, undisclosed(c.Organization, errNotHere)
	}
	return registryapi.Target{
		Registry: c.Registry, Scope: c.Scope, Audiences: c.Audiences, Namespaces: c.Broker, Quota: c.Quota,
		HonourFormat: c.Custom[registryapi.FormatKey] == registryapi.FormatHonoured,
	}, nil
}
