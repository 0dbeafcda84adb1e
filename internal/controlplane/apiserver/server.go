package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	storagevalue "k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/util/compatibility"
	clientrest "k8s.io/client-go/rest"

	"freshet/api/v1alpha1"
	"freshet/internal/base/web"
	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/controlplane/events"
	"freshet/internal/controlplane/organizations"
	"freshet/internal/controlplane/quantities"
	"freshet/internal/controlplane/store"
	"freshet/internal/ops/quota"
	"freshet/internal/surfaces/pipeline"
)

// Config configures the resource API.
type Config struct {
	Etcd   etcd.Endpoints
	Prefix string // prefix of every key; /freshet when empty
	Kinds  []store.Definition
	// Authenticator authenticates tokens for one of the Audiences.
	Authenticator pipeline.Authenticator
	Audiences     []string
	Authorizer    Authorizer
	// Auditor receives the record of every write and every denial; nothing is recorded when nil.
	Auditor pipeline.Auditor
	// Transformers encrypt resources at rest, by resource name.
	Transformers storagevalue.ResourceTransformers
	// Store reports how full etcd is, to reject writes early; nothing is rejected when nil.
	Store etcd.Store
	// Budget limits the objects and bytes of one organization.
	Budget budget.Limits
	// Ready contains the checks of /readyz and /healthz in addition to those of the API machinery.
	Ready []Check
	// Degraded returns what is not as it should be while the server is ready; nil for nothing.
	Degraded func() []string
	// Address is the host:port that discovery returns to clients.
	Address string
	// Version of the product, shown in the OpenAPI documents.
	Version string
	// CompactionInterval determines how long continue tokens and resource versions of watches stay
	// valid; five minutes when zero.
	CompactionInterval time.Duration
	// MaxBody limits the size of a request body; 2 MiB when zero.
	MaxBody int64
	// Bodies limits the memory of request bodies; no limit when nil.
	Bodies *web.Limiter
	// MaxReads and MaxWrites limit the concurrent calls; 400 and 200 when zero.
	MaxReads  int
	MaxWrites int
	// RefuseNewOrganizations disables the creation of an organization by its first object.
	RefuseNewOrganizations bool
	// Quotas limits the objects and the call rate of organizations; no limits when nil.
	Quotas *quota.Organizations
	// Log receives records that belong to no call; nothing is logged when nil.
	Log *slog.Logger
}

// Check is a condition of readiness.
type Check struct {
	Name    string
	Healthy func() error
}

const (
	defaultPrefix      = "/freshet"
	defaultMaxBody     = 2 << 20
	requestTimeout     = 60 * time.Second
	maxReads           = 400
	maxWrites          = 200
	watchDrain         = 2 * time.Second
	compactionInterval = 5 * time.Minute
)

// Server is the resource API, ready to be mounted.
type Server struct {
	generic  *genericapiserver.GenericAPIServer
	config   *genericapiserver.Config
	loopback *loopback
	handler  http.Handler
	stop     context.CancelFunc
	stopped  chan struct{}
	drain    *drain
	recorder *events.Recorder
	stores   *directStores // nil with an external etcd
	caches   []cached
	guard    *budget.Guard
	client   *clientv3.Client // for the guard
	degraded func() []string
	log      *slog.Logger
}

// New builds the API over etcd. It serves nothing before Start.
func New(cfg Config) (*Server, error) {
	// The API machinery would end the process for an invalid address.
	if _, _, err := net.SplitHostPort(cfg.Address); err != nil {
		return nil, fmt.Errorf("parsing the address of the resource API, which must be host:port: %w", err)
	}
	scheme, err := newScheme(cfg.Kinds)
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	kinds := kindsOf(cfg.Kinds)
	config := genericapiserver.NewConfig(codecs)
	config.EffectiveVersion = release{compatibility.DefaultBuildEffectiveVersion()}
	describe(config, scheme, cfg.Kinds, cfg.Version)
	setDefaults(config, cfg)

	loop := newLoopback()
	config.LoopbackClientConfig = loop.config()
	config.Authentication.Authenticator = authentication(cfg.Authenticator, cfg.Audiences)
	config.Authorization.Authorizer = authorizer.AuthorizerFunc(chainPolicy{newPolicy(cfg)}.Authorize)
	limits := newInFlight(codecs, cfg.Bodies, config.MaxRequestBodyBytes, cmp.Or(cfg.MaxReads, maxReads),
		cmp.Or(cfg.MaxWrites, maxWrites))
	config.BuildHandlerChainFunc = buildChain(scheme, codecs, kinds, limits, cfg.Auditor, cfg.Quotas)
	guard := budget.New(resourcePrefix(cfg), cfg.Budget, cfg.Store)
	config.ResourceTransformers = guard.Transformers(cfg.Transformers)
	if err := storageOptions(cfg, storageCodec(scheme, codecs, v1alpha1.SchemeGroupVersion)).ApplyTo(
		config); err != nil {
		return nil, fmt.Errorf("configuring the store: %w", err)
	}
	stores := useDirectStores(cfg, config)
	removeEtcdLivez(config)
	config.RESTOptionsGetter = guard.RESTOptions(config.RESTOptionsGetter)

	coreResources, err := openCore(scheme, codecs, config.RESTOptionsGetter)
	if err != nil {
		return nil, err
	}
	coreResources.quotas = cfg.Quotas
	config.AdmissionControl = organizations.Admission{
		Organizations: coreResources.organizations,
		AutoCreate:    !cfg.RefuseNewOrganizations,
	}
	generic, err := config.Complete(nil).New("freshet",
		genericapiserver.NewEmptyDelegateWithCustomHandler(notFound(codecs)))
	if err != nil {
		return nil, fmt.Errorf("building the resource API: %w", err)
	}
	storages, err := openKinds(cfg, scheme, config)
	if err != nil {
		return nil, err
	}
	if err := install(generic, scheme, codecs, cfg, storages, coreResources); err != nil {
		return nil, err
	}
	log := cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	caches := cachesOf(storages, coreResources)
	if err := generic.AddPostStartHook("organizations",
		completeOrganizations(storages, coreResources.organizations, caches, log)); err != nil {
		return nil, fmt.Errorf("building the resource API: %w", err)
	}
	client, err := cfg.Etcd.Client(zap.NewNop())
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return &Server{
		guard: guard, client: client, degraded: degradedNotes(guard.Degraded, cfg.Degraded), log: log,
		generic: generic, config: config, recorder: coreResources.events.NewRecorder(log), loopback: loop,
		stopped: make(chan struct{}), drain: newDrain(),
		stores: stores, caches: caches,
	}, nil
}

// openKinds opens the stores of the kinds, by path.
func openKinds(cfg Config, scheme *runtime.Scheme, config *genericapiserver.Config) (map[string]rest.Storage, error) {
	storages := map[string]rest.Storage{}
	for _, kind := range cfg.Kinds {
		s, err := kind.Open(scheme, config.RESTOptionsGetter, objectAuthorizer{cfg.Authorizer, kindsOf(cfg.Kinds)})
		if err != nil {
			return nil, err
		}
		plural := kind.Info().Plural
		storages[plural] = s.Main
		storages[plural+"/"+statusName] = s.Status
		for name, subresource := range s.Subresources {
			storages[plural+"/"+name] = subresource
		}
	}
	return storages, nil
}

// install installs every API group.
func install(generic *genericapiserver.GenericAPIServer, scheme *runtime.Scheme, codecs serializer.CodecFactory,
	cfg Config, storages map[string]rest.Storage, coreResources core,
) error {
	group := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, scheme, metav1.ParameterCodec, codecs)
	// The API group's own serializers stream lists; ours check the decoded bodies.
	group.NegotiatedSerializer = readableStatuses{quantities.Checked(group.NegotiatedSerializer)}
	group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = storages
	if err := generic.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("installing the kinds: %w", err)
	}
	for _, group := range reviewGroups(scheme, codecs, &reviewer{newPolicy(cfg)}) {
		if err := generic.InstallAPIGroup(group); err != nil {
			return fmt.Errorf("installing the reviews: %w", err)
		}
	}
	return coreResources.install(generic, scheme, codecs, kindsOf(cfg.Kinds), contents{storages},
		newPolicy(cfg).readable)
}

// setDefaults changes defaults of the API machinery.
func setDefaults(config *genericapiserver.Config, cfg Config) {
	config.ExternalAddress = cfg.Address
	config.EnableProfiling = false // served by the ops listener
	config.EnableMetrics = false
	config.EnableIndex = false
	// Priority and fairness requires objects of a Kubernetes cluster.
	config.FlowControl = nil
	config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight = 0, 0 // inFlight limits them
	config.RequestTimeout = requestTimeout
	config.ShutdownDelayDuration = 0
	config.ShutdownWatchTerminationGracePeriod = watchDrain
	config.MaxRequestBodyBytes = cmp.Or(cfg.MaxBody, defaultMaxBody)
	for _, check := range cfg.Ready {
		checker := healthz.NamedCheck(check.Name, func(*http.Request) error { return check.Healthy() })
		config.ReadyzChecks = append(config.ReadyzChecks, checker)
		config.HealthzChecks = append(config.HealthzChecks, checker)
	}
}

// removeEtcdLivez removes the checks from /livez that depend on other processes. etcd needs a majority of
// its members, and a process that waits for them is alive; restarting it would make things worse.
// /readyz has these checks.
func removeEtcdLivez(config *genericapiserver.Config) {
	config.LivezChecks = slices.DeleteFunc(config.LivezChecks,
		func(c healthz.HealthChecker) bool { return strings.HasPrefix(c.Name(), "etcd") })
	config.LivezGracePeriod = startGracePeriod
}

// startGracePeriod is how long hooks that read from etcd may take after the start until /livez fails.
const startGracePeriod = 10 * time.Minute

func newPolicy(cfg Config) policy {
	return policy{authorizer: cfg.Authorizer, kinds: kindsOf(cfg.Kinds), reviews: reviewGroupNames()}
}

// Start runs the hooks, fills the caches and serves the API until Stop.
func (s *Server) Start() {
	prepared := s.generic.PrepareRun()
	s.handler = prepared.Handler
	s.loopback.serve(s.handler)
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go s.recorder.Run(ctx)
	go s.guard.Follow(ctx, s.client, s.log)
	go func() {
		defer close(s.stopped)
		// Without its own listener the API machinery's Run does not return; DrainedNotify reports
		// when the last request has ended.
		go func() { _ = prepared.RunWithContext(ctx) }() //nolint:contextcheck // Stop ends it
		<-s.config.DrainedNotify()
	}()
}

// Handler serves /api, /apis, /openapi, /version and the health pages.
func (s *Server) Handler() http.Handler {
	return reportDegraded(s.degraded, s.drain.handle(s.handler))
}

// Loopback returns the configuration of the service's own client, which has all permissions.
func (s *Server) Loopback() *clientrest.Config {
	return clientrest.CopyConfig(s.generic.LoopbackClientConfig)
}

// Recorder returns the recorder that writes the controllers' steps as Events.
func (s *Server) Recorder() *events.Recorder { return s.recorder }

// Stop rejects new requests, waits for running ones, and closes the store.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	var err error
	select {
	case <-s.stopped:
	case <-ctx.Done():
		err = fmt.Errorf("waiting for the last requests of the resource API: %w", ctx.Err())
	}
	s.loopback.shutdown()
	s.generic.Destroy()
	_ = s.client.Close() // no longer used, and possibly closed already
	s.stores.close()
	return err
}

// Usage returns the stored objects and bytes of every organization.
func (s *Server) Usage() map[string]budget.Usage { return s.guard.Usage() }

// resourcePrefix returns the key prefix of all resources.
func resourcePrefix(cfg Config) string { return cmp.Or(cfg.Prefix, defaultPrefix) + "/resources" }

func storageOptions(cfg Config, codec runtime.Codec) *options.EtcdOptions {
	backend := storagebackend.NewDefaultConfig(resourcePrefix(cfg), codec)
	backend.Transport.ServerList = cfg.Etcd.URLs
	backend.Transport.TrustedCAFile = cfg.Etcd.CAFile
	backend.Transport.CertFile = cfg.Etcd.CertFile
	backend.Transport.KeyFile = cfg.Etcd.KeyFile
	if dialer := cfg.Etcd.Dialer; dialer != nil {
		backend.Transport.EgressLookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
			return func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.Dial(ctx) }, nil
		}
	}
	backend.CompactionInterval = cmp.Or(cfg.CompactionInterval, compactionInterval)
	opts := options.NewEtcdOptions(backend)
	opts.DefaultStorageMediaType = "application/vnd.kubernetes.protobuf"
	opts.DeleteCollectionWorkers = 8
	opts.SkipHealthEndpoints = cfg.Etcd.Member != nil // useDirectStores adds its own checks
	return opts
}
