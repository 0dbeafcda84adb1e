package server

import (
	"context"
	"net/http"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/dataplane"
	"freshet/internal/ops/certificates"
	"freshet/internal/surfaces/adminapi"
	"freshet/internal/surfaces/auditapi"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/clusterpath"
	"freshet/internal/surfaces/docsite"
	"freshet/internal/surfaces/messageapi"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/refusal"
	"freshet/internal/surfaces/registryapi"
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
	s.ports.certs, s.ports.tls = files, secure
	s.front.Serve(newRouter(mounts(refusingHandlers(web.ErrStarting, refusal.Starting(&s.waitsFor)), s.cors()),
		s.cors()))
	bounded := web.LimitHeaders(web.LimitBodyTime(&s.front, s.cfg.Timeouts.ReadBody.Std()),
		int(s.cfg.Limits.HeaderSize))
	main := web.FromProxies(web.MiddlewareWithShutdown(bounded, s.access, s.metrics, &s.ending), s.cfg.Proxies.Set())
	s.ports.http.ServeMain(main, &refusal.Malformed{Routes: &s.front, Log: s.access, Observer: s.metrics}, secure)
	return nil
}

// openSurfaces creates the surfaces. Until the last phase is done, the server only serves the
// health pages and rejects other requests.
func (s *server) openSurfaces(context.Context) (err error) {
	surfaces, err := s.surfaces()
	if err != nil {
		return err
	}
	s.routes = s.whileAlive(newRouter(mounts(surfaces, s.cors()), s.cors()))
	s.front.Serve(newRouter(mounts(refusingHandlers(web.ErrStarting, surfaces.health), s.cors()), s.cors()))
	s.ports.http.ServeOps(s.metrics.OpsHandler(s.log, s.api.Handler()),
		&refusal.Malformed{Routes: refusal.Plain, Log: s.access, Observer: s.metrics})
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
		root: frontPage(rootRegistry), registry: rootRegistry,
		prefixedRegistry: clusterpath.StripSegments(1, registry(false)),
		audit:            s.auditTrail(options), system: s.system(options), tokens: tokens, pages: pages,
		resources: apiserver.RejectWhenFull(s.api.Handler(), s.reserve.HasSpace), health: s.api.Handler(),
		security: docsite.SecurityText(s.cfg.SecurityContact), console: consolePages(), docs: documentation(),
	}, nil
}

// cors returns the CORS settings of all surfaces.
func (s *server) cors() web.CORS { return web.CORS{Origins: s.cfg.CORS.Origins} }

// surfaceOptions returns the options that all surfaces share.
func (s *server) surfaceOptions() pipeline.Options {
	return pipeline.Options{
		Authenticator: s.identity.authenticator,
		Authorizer:    s.identity.policy,
		Auditor:       s.audit,
		Limiter:       s.limiter,
	}
}

// system returns the system API: metrics, members and configuration of the server.
func (s *server) system(options pipeline.Options) http.Handler {
	return systemapi.New(systemapi.Options{
		Options: options, Audiences: s.identity.audiences, Metrics: s.metrics,
		Ensemble: systemMembers{s.servers, s.clusters}, Configuration: &s.settings,
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
		Auditor:  options.Auditor,
		Subjects: s.signIn.Subjects, Codes: s.signIn.Codes, Devices: s.signIn.Devices, Grants: s.signIn.Grants,
		Authenticator: options.Authenticator, Accepted: s.identity.audiences,
	})
}

// auditTrail returns the surface for reading the audit log.
func (s *server) auditTrail(options pipeline.Options) http.Handler {
	opts := auditapi.Options{Options: options, Audiences: s.identity.audiences}
	if s.audit != nil {
		opts.Trail = s.audit
	}
	return auditapi.New(opts)
}

// brokers resolves the broker of a request, with its consumer groups if withGroups is set.
type brokers struct {
	s          *server
	withGroups bool
}

// Resolve implements pipeline.Resolver.
func (b brokers) Resolve(r *http.Request) (brokerhttp.Cluster, error) {
	s := b.s
	c, err := clusterpath.Find(s.plane, r)
	if err != nil {
		return brokerhttp.Cluster{}, err
	}
	found := brokerhttp.Cluster{
		Catalogue: c.Broker.Catalogue, Grants: c.Broker.Grants, Schemas: c.Broker.Schemas,
		Producer: c.Broker.Producer, Consumer: c.Broker.Consumer, Searcher: c.Broker.Searcher,
		Replayer: c.Broker.Replayer, Kafka: c.Broker.Kafka, UID: c.UID, History: s.history,
		Statistics: c.Broker.Statistics, Limits: c.Broker.Limits(),
		Scope: c.Scope, Audiences: c.Audiences, Quota: c.Quota,
		Members: s.topology.routes(c),
	}
	if b.withGroups && c.Stream {
		found.Groups = clusterGroups{s, c}
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
	c, err := clusterpath.Find(g.plane, r)
	if err != nil {
		return registryapi.Target{}, err
	}
	if c.RegistryAtRoot != g.atRoot && !g.plane.IsDefault(c) {
		return registryapi.Target{}, clusterpath.Undisclosed(c.Organization, errNotHere)
	}
	return registryapi.Target{
		Registry: c.Registry, Scope: c.Scope, Audiences: c.Audiences, Namespaces: c.Broker.Catalogue, Quota: c.Quota,
		HonourFormat: c.Custom[registryapi.FormatKey] == registryapi.FormatHonoured,
	}, nil
}
