// Package server composes the service: stores, identity, the resource API with its
// controllers, the data plane, and one router over all surfaces.
//
// It is the only package that imports all others. Run opens the phases in order and closes
// them in reverse: the server first stops accepting connections, then waiting callers get
// their responses, then the controllers, the resource API, the clusters and etcd stop.
//
// # Locks
//
//	lock                     protects
//	server.staging           the staged copy of a backup; held while the copy exists
//	diskReserve.mu              the reserve file and its size
//	reloadingCertificate.mu          the loaded HTTPS certificate and when its files were checked
//	signInCounts.mu          the counts of sign-ins
//	connectionLimit          semaphore: open connections of one listener, or of all
//	lock (a file lock)       the data directory, against other processes
//
// Order: the connectionLimit of a listener before the one of all listeners. No other two
// are held at the same time. No lock except for server.staging and the file lock is held
// during network calls.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
	"freshet/internal/base/version"
	"freshet/internal/base/web"
	"freshet/internal/config"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/controlplane/pools"
	"freshet/internal/dataplane"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/identity/openid"
	"freshet/internal/identity/signin"
	"freshet/internal/ops/audit"
	"freshet/internal/ops/certificates"
	"freshet/internal/ops/datadir"
	"freshet/internal/ops/disk"
	"freshet/internal/ops/listen"
	"freshet/internal/ops/quota"
	"freshet/internal/ops/telemetry"
	"freshet/internal/server/migrate"
	"freshet/internal/surfaces/refusal"
)

// server contains all running parts.
type server struct {
	cfg     *config.Config
	current atomic.Pointer[config.Config] // the configuration with changes by SIGHUP, see settings
	logger  *telemetry.Log
	log     *slog.Logger
	access  *web.AccessLog
	metrics *telemetry.Metrics
	plan    *pools.Plan

	lock       *datadir.Lock
	reserve    *disk.Reserve
	restored   *restored
	ensemble   *ensemble              // nil for a single server
	waitsFor   atomic.Pointer[string] // what a starting server waits for, for the health pages
	fileBudget listen.Budget
	sockets    listen.Limit // for the connections of all listeners
	ports      *listen.Ports
	member     *etcd.Member // nil if etcd is external
	store      etcd.Store   // reports how full etcd is
	limiter    *web.Limiter
	etcd       *clientv3.Client
	identity   *identitySet
	signIn     *signin.Service
	provider   *openid.Provider // nil without an OpenID provider
	signIns    signInCounts
	link       string       // sign-in link of the first start; "" at later starts
	audit      *audit.Trail // nil if the audit log is off
	quotas     *quota.Organizations
	plane      *dataplane.Plane
	kafka      kafkaServer
	tlsConfig  *tls.Config // of HTTPS, and of the Kafka protocol
	api        *apiserver.Server
	kinds      *kinds.Set
	loops      *kinds.Controllers
	readiness  readiness
	certs      *certificates.Files
	front      refusal.Front // handler of the ports
	ending     atomic.Bool   // responses close their connections
	routes     http.Handler  // handler that front serves after the last phase
	staging    sync.Mutex    // held while the staged copy of a backup exists
	backups    *backups

	background       context.CancelFunc
	controllersEnded chan struct{} // closed when the controllers have stopped
	failed           chan error
	abort            context.CancelCauseFunc // cancels the phases that are being opened
	closers          []func() error          // in the order of opening
}

// Run serves until the context is canceled, then shuts down. read reads the configuration
// again on SIGHUP. Run writes the banner to out. exports are environment variables that the
// banner shows, because a shell needs them, in addition to the data directory, before
// commands find this server.
func Run(ctx context.Context, cfg *config.Config, read func() (*config.Config, error), out io.Writer,
	exports []string,
) error {
	started := time.Now()
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP) // before the server reports that it is ready
	defer signal.Stop(hangUps)
	room := disk.OpenReserve(cfg.DataDir, etcd.Segment)
	logger, err := telemetry.OpenLog(telemetry.LogOptions{
		Level: cfg.Log.Level, Format: cfg.Log.Format, File: cfg.LogPath(), Stderr: os.Stderr, HasSpace: room.HasSpace,
	})
	if err != nil {
		return err
	}
	room.SetLogger(logger.Logger)
	telemetry.LimitMemory()
	telemetry.BridgeKlog(logger.Logger)
	s := &server{
		cfg: cfg, logger: logger, log: logger.Logger, plan: planOf(cfg),
		access:           web.NewAccessLog(logger.Logger, accessMode(cfg), cfg.Log.AccessRate),
		metrics:          telemetry.NewMetrics(version.Get()),
		limiter:          web.NewLimiter(cfg.Limits.RequestsInFlight, int64(cfg.Limits.BodyMemory)),
		failed:           make(chan error, 4),
		controllersEnded: make(chan struct{}),
		closers:          []func() error{logger.Close},
		reserve:          room,
	}
	s.backups = s.newBackups()
	loaded := *cfg // a copy from before the addresses of open ports are written into cfg
	s.current.Store(&loaded)
	opening, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	s.abort = abort
	if err := s.open(opening); err != nil {
		if cause := context.Cause(opening); cause != nil && ctx.Err() == nil {
			err = cause // instead of the error that the cancellation caused
		}
		return errors.Join(err, s.close())
	}
	s.announce(out, exports, time.Since(started), s.plane.Health())
	err = s.wait(ctx, hangUps, read)
	return errors.Join(err, s.close())
}

// settings returns the current configuration. Settings that need a restart have their values
// from the start.
func (s *server) settings() *config.Config { return s.current.Load() }

// wait returns when the context is canceled or a part has failed. It reloads on SIGHUP.
func (s *server) wait(ctx context.Context, hangUps <-chan os.Signal, read func() (*config.Config, error)) error {
	for {
		select {
		case <-ctx.Done():
			s.log.Info("stopping")
			return nil
		case err := <-s.failed:
			s.log.Error("stopping after a failure", slog.Any("error", err))
			return err
		case <-hangUps:
			s.reload(ctx, read)
		}
	}
}

// open opens the phases in order. If one fails, Run closes those that are open.
func (s *server) open(ctx context.Context) error {
	for _, phase := range []struct {
		name string
		open func(context.Context) error
	}{
		{"data directory", s.openDirectory},
		{"ensemble", s.openEnsemble},
		{"ports", s.openPorts},
		{"members' port", s.openInternal},
		{"Kafka ports", s.openKafkaPorts},
		{"responses during the start", s.serveStarting},
		{"etcd", s.openEtcd},
		{"log", s.openLog},
		{"members", s.openMembers},
		{"identity", s.openIdentity},
		{"audit log", s.openAudit},
		{"data plane", s.openPlane},
		{"resource API", s.openResources},
		{"surfaces", s.openSurfaces},
		{"controllers", s.openControllers},
		{"first start", s.firstStart},
		{"Kafka protocol", s.openKafka},
		{"control socket", s.openControl},
	} {
		began := time.Now()
		if err := phase.open(ctx); err != nil {
			return err
		}
		s.log.Debug("phase done", slog.String("phase", phase.name), slog.Duration("took", time.Since(began)))
	}
	s.metrics.Registry().MustRegister(newCollector(s))
	s.front.Serve(s.routes)
	s.reserve.StoresOpen()
	s.readiness.set()
	s.publishReady(ctx, true)
	return nil
}

func (s *server) openDirectory(context.Context) (err error) {
	if s.lock, err = datadir.Acquire(s.cfg.DataDir); err != nil {
		return err
	}
	s.closers = append(s.closers, s.lock.Release, s.reserve.Close)
	if err := s.reserve.Maintain(); err != nil {
		return err
	}
	if _, err := os.Stat(s.cfg.Path(restoringDir)); err == nil {
		return fmt.Errorf("data directory %s is not complete, because a restore to it did not finish; run freshet "+
			"restore again", s.cfg.DataDir)
	}
	if _, err := os.Stat(s.cfg.Path(migrate.Folder)); err == nil {
		return fmt.Errorf("data directory %s is not complete, because a migration into it did not finish; run freshet "+
			"migrate again", s.cfg.DataDir)
	}
	if err := s.checkNotMemberDirectory(); err != nil {
		return err
	}
	return datadir.OpenFormats(s.cfg.DataDir, s.log)
}

// checkNotMemberDirectory returns an error if a single server is started on the data directory of a
// member, because the ensemble would not have the data that it stores there.
func (s *server) checkNotMemberDirectory() error {
	if s.cfg.Members.Enabled() {
		return nil
	}
	if name := bundle.InstalledMember(s.cfg.BundleDir()); name != "" {
		return errs.Newf(errs.Precondition,
			"%s is the data directory of member %s of an ensemble, but the configuration has no members; "+
				"start it with the configuration that freshet ensemble join wrote (--config), or choose another "+
				"directory with --data-dir", s.cfg.DataDir, name)
	}
	return nil
}

func (s *server) openPorts(ctx context.Context) (err error) {
	s.fileBudget = listen.DivideOpenFiles(s.cfg.Limits.Connections, s.log)
	s.sockets = listen.NewLimit(s.fileBudget.Connections)
	s.ports, err = listen.Open(ctx, listen.Options{
		HTTP: unlessOff(&s.cfg.HTTP), HTTPS: unlessOff(&s.cfg.HTTPS), Ops: unlessOff(&s.cfg.Ops),
		Connections: s.cfg.Limits.Connections, Shared: s.sockets,
		ReadHeader: s.cfg.Timeouts.ReadHeader.Std(), Idle: s.cfg.Timeouts.Idle.Std(),
		HeaderSize: int(s.cfg.Limits.HeaderSize), Log: s.log, Failed: s.failed,
	})
	if err != nil {
		return err
	}
	s.plan.BaseURL = s.cfg.PublicURL() // cfg now has the addresses of the open ports
	s.closers = append(s.closers, func() error { s.ports.Close(); return nil })
	return nil
}

// unlessOff returns an address, or nil if it is off.
func unlessOff(address *string) *string {
	if *address == config.Off {
		return nil
	}
	return address
}

// openEtcd starts the embedded etcd, or connects to the external one. The later phases do
// not depend on which one it is.
func (s *server) openEtcd(ctx context.Context) error {
	zap := telemetry.ZapLogger(telemetry.Library(s.log, "etcd"))
	if !s.cfg.Etcd.External() {
		if err := datadir.CheckResourceStore(s.cfg.DataDir); err != nil {
			return err
		}
		peers, err := s.etcdEnsemble(ctx)
		if err != nil {
			return err
		}
		member, err := etcd.Start(ctx, s.cfg.Path("etcd"), etcd.Options{
			Logger: zap, Log: s.log, QuotaBytes: int64(s.cfg.Etcd.Quota), Ensemble: peers,
		})
		if err != nil {
			return err
		}
		s.member, s.store = member, member
		s.closers = append(s.closers, member.Close)
		go func() {
			if err, ok := <-member.Failed(); ok && err != nil {
				err = fmt.Errorf("running the embedded etcd: %w", err)
				s.abort(err) // phases that are being opened would wait forever
				s.failed <- err
			}
		}()
	}
	client, err := s.endpoints().Client(zap)
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	s.etcd = client
	s.closers = append(s.closers, client.Close)
	if s.store == nil {
		observer := etcd.Observe(client, s.log)
		s.store = observer
		s.closers = append(s.closers, observer.Close)
	}
	return etcd.OpenFormat(ctx, client, s.cfg.Etcd.Prefix, s.log)
}

func (s *server) openIdentity(ctx context.Context) (err error) {
	if s.identity, err = openIdentities(ctx, s.cfg, s.etcd); err != nil {
		return err
	}
	if s.ensemble != nil {
		s.identity.directory.SetCurrentCheck(s.ensemble.members.Alive)
	}
	if err := s.withdrawer().withdraw(ctx); err != nil {
		return fmt.Errorf("withdrawing signing keys: %w", err)
	}
	return s.openSignIn()
}

func (s *server) openPlane(context.Context) (err error) {
	if s.quotas, err = openQuotas(s.cfg); err != nil {
		return err
	}
	opts := s.planeOptions()
	if s.restored, err = openRestored(s.cfg); err != nil {
		return err
	}
	opts.MayBeMissing = s.restored.mayHaveNoStore
	shared, err := s.openShared()
	if err != nil {
		return err
	}
	if shared != nil {
		opts.Ensemble = shared
	}
	if s.plane, err = dataplane.Open(opts); err != nil {
		return err
	}
	s.closers = append(s.closers, s.plane.Close)
	s.shareDataPlane(shared)
	return nil
}

// stopTimeout is the timeout for stopping after the requests have finished.
const stopTimeout = 5 * time.Second

// close stops everything within the drain time plus stopTimeout; a member of an ensemble
// also gets the time to hand its shards over. Parts that do not stop in time, for example
// because a disk hangs, end with the process. Acknowledged data is durable.
func (s *server) close() error {
	timeout := s.cfg.Timeouts.Drain.Std() + stopTimeout
	if s.ensemble != nil {
		timeout += handOverTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.closeAll(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("shutdown timed out and was aborted; acknowledged data is on disk")
	}
}

// closeAll stops everything, last opened first.
func (s *server) closeAll(ctx context.Context) error {
	s.readiness.unset()
	s.ending.Store(true)
	s.retire()
	led := s.stopLeading(ctx)
	var problems []error
	s.handOver(ctx)
	if s.plane != nil {
		s.plane.Drain()
	}
	if s.api != nil {
		s.api.Drain()
	}
	if s.ports != nil {
		drain, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Drain.Std())
		streamed := s.stopKafka(drain)
		if err := s.ports.Shutdown(drain); err != nil {
			s.log.Warn("requests were aborted at the end of the drain time", slog.Any("error", err))
		}
		<-streamed
		s.stopInternal(drain)
		cancel()
	}
	s.stopConfirming()
	<-led
	s.leaveEnsemble()
	if s.background != nil {
		s.background()
		<-s.controllersEnded
	}
	if s.api != nil {
		problems = append(problems, s.api.Stop(ctx))
	}
	for i := len(s.closers) - 1; i >= 0; i-- {
		problems = append(problems, s.closers[i]())
	}
	return errors.Join(problems...)
}

// checks returns the checks of /readyz in addition to those of the API server library.
func (s *server) checks() []apiserver.Check {
	list := []apiserver.Check{
		{Name: "startup", Healthy: s.readiness.check},
		{Name: "clusters", Healthy: s.plane.Health},
		{Name: "etcd-quota", Healthy: s.storeHealth},
	}
	return append(list, s.ensembleChecks()...)
}

// errStoreExhausted means that even the server's own writes fail. Writes of callers are
// rejected long before, while the server is ready.
var errStoreExhausted = errors.New(
	"etcd is full and rejects all writes; see docs/howto/operate.md#when-the-resource-store-is-full")

func (s *server) storeHealth() error {
	if s.store.Space().Exhausted {
		return errStoreExhausted
	}
	return nil
}

// endpoints returns the addresses and credentials of etcd, embedded or external.
func (s *server) endpoints() etcd.Endpoints {
	if s.member != nil {
		return s.member.Endpoints()
	}
	return etcd.Endpoints{
		URLs: s.cfg.Etcd.Endpoints, CAFile: s.cfg.Etcd.CAFile, CertFile: s.cfg.Etcd.CertFile,
		KeyFile: s.cfg.Etcd.KeyFile,
	}
}
