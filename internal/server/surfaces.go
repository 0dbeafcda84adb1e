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

// openSurfaces creates the surfaces. Until the last phase is done, the server only serves the
// health pages and rejects other requests.
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

// surfaces returns the handlers of all surfaces.
func (s *server) surfaces() (*handlers, error) {
	options := s.surfaceOptions()
	messages := messageapi.New(messageapi.Options{
		Options: options, Resolver: brokers{s, false}, WriteTimeout: s.cfg.Timeouts.WriteBody.Std(),
	})
	admin := adminapi.New(adminapi.Options{
		Options: options, Resolver: brokers{s, true}, Accounts: s.identity.directory,
	})
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
		root: frontPage(rootRegistry), registry: rootRegistry, prefixedRegistry: stripSegments(1, registry(false)),
		audit: s.auditTrail(options), system: s.system(options), tokens: tokens, pages: pages,
		resources: s.reserve.rejectWhenFull(s.api.Handler()), health: s.api.Handler(),
		console: consolePages(),
	}, nil
}

// cors returns the CORS settings of all surfaces.
func (s *server) cors() web.CORS { return web.CORS{Origins: s.cfg.CORS.Origins} }

// surfaceOptions returns the options that all surfaces share.
func (s *server) surfaceOptions() pipeline.Options {
	return pipeline.Options{
		Authenticator: s.identity,
		Authorizer:    s.identity.policy,
		Auditor:       s,
		Limiter:       s.limiter,
	}
}

// system returns the system API: metrics, members and configuration of the server.
func (s *server) system(options pipeline.Options) http.Handler {
	return systemapi.New(systemapi.Options{
		Options: options, Audiences: s.identity.audiences, Metrics: s.metrics, Ensemble: ensembleStatus{s},
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
		SignIn:  s.signIn, Authenticator: options.Authenticator, Accepted: s.identity.audiences,
	})
}

// opsMux returns the handler of the ops address: metrics, health and profiles.
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
		// Before the first cluster its folder does not exist. If both fail the engine
		// chooses a reserve.
		disk, _, _ = diskBytes(s.cfg.DataDir)
	}
	opts := dataplane.Options{
		Dir: s.cfg.Path("clusters"), Domain: s.cfg.Domain, Logger: s.log,
		DiskReserve: config.DiskReserve(disk, s.cfg.Limits.DiskReserve), OpenTables: s.fileBudget.tables,
		Quotas: s.quotas,
		Limits: messaging.Limits{
			MessageBytes: int(s.cfg.Limits.MessageBody),
			MaxWait:      s.cfg.Timeouts.ConsumeMax.Std(),
			MaxWaiting:   s.cfg.Limits.WaitingConsumers,
		},
	}
	if s.cfg.DefaultCluster != config.Off {
		opts.DefaultOrganization, opts.DefaultName, _ = strings.Cut(s.cfg.DefaultCluster, "/")
	}
	return opts
}

// brokers resolves the broker of a request, with its consumer groups if withGroups is set.
type brokers struct {
	s          *server
	withGroups bool
}

// Resolve implements pipeline.Resolver.
func (b brokers) Resolve(r *http.Request) (brokerhttp.Cluster, error) {
	s := b.s
	c, err := findCluster(s.plane, r)
	if err != nil {
		return brokerhttp.Cluster{}, err
	}
	found := brokerhttp.Cluster{
		Broker: c.Broker, Scope: c.Scope, Audiences: c.Audiences, Quota: c.Quota,
		Owner: s.ownerOf(c), Coordinator: s.coordinatorOf(c), Coordinators: s.coordinatorsOf(c),
	}
	if b.withGroups && c.Stream {
		found.Groups = func(context.Context) (*groups.Coordinator, error) { return s.groupsOf(c) }
		found.GroupsReading = s.readingOf(c)
	}
	return found, nil
}

// registries resolves the registry of a request by its cluster and path. A standard cluster
// has its registry under /stream, the other types at the root, the default cluster at both
// (docs/spec/registry.md#address).
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
		return registryapi.Target{}, undisclosedError(c.Organization, errNotHere)
	}
	return registryapi.Target{
		Registry: c.Registry, Scope: c.Scope, Audiences: c.Audiences, Namespaces: c.Broker, Quota: c.Quota,
		HonourFormat: c.Custom[registryapi.FormatKey] == registryapi.FormatHonoured,
	}, nil
}
