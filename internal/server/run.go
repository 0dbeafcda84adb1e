// Package server puts the service together: stores, identity, the resource API
// with its controllers, the data plane, and one mux over all surfaces.
//
// It is the only package that knows all the others. Run is a list of phases;
// each phase stands in a file of its own and can be closed again, and closing
// happens in the opposite order: first nobody new comes in, then waiting
// callers get their answer, then controllers, the resource API, the clusters,
// and etcd last.
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
	"path/filepath"
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
	"freshet/internal/ops/quota"
	"freshet/internal/ops/telemetry"
	"freshet/internal/server/migrate"
)

// server is everything that runs.
type server struct {
	cfg     *config.Config
	current atomic.Pointer[config.Config] // what of it may change at run time
	logger  *telemetry.Log
	log     *slog.Logger
	access  *web.AccessLog
	metrics *telemetry.Metrics
	plan    *pools.Plan

	lock      *lock
	room      *diskRoom
	restored  *restored
	group     *group                 // nil for a server that is alone
	waits     atomic.Pointer[string] // for what a server that starts waits
	files     files
	sockets   connectionLimit // for the connections of all listeners
	ports     *listeners
	member    *etcd.Member
	store     etcd.Store // how full etcd is
	limiter   *web.Limiter
	etcd      *clientv3.Client
	identity  *identities
	people    *signin.Service
	provider  *openid.Provider // nil when there is none
	signIns   signInCounts
	link      string       // of the first start, to sign in with; "" later
	audit     *audit.Trail // nil when there is none
	quotas    *quota.Book
	plane     *dataplane.Plane
	stream    stream
	tlsConfig *tls.Config // of HTTPS, and of the stream protocol
	api       *apiserver.Server
	kinds     *kinds.Set
	loops     *kinds.Controllers
	readiness readiness
	certs     *certificates
	front     frontHandler // what the ports serve
	ending    atomic.Bool  // connections end with their next response
	routes    http.Handler // what front serves once everything is there
	staging   sync.Mutex   // held while the staged copy of a backup is there
	backups   *backups

	background context.CancelFunc
	ended      chan struct{} // controllers have stopped
	failed     chan error
	abort      context.CancelCauseFunc // ends what is being opened
	closers    []func() error          // in the order of opening
}

// Run serves until the context ends, then stops in good order. read reads the
// configuration again, which SIGHUP asks for. The first screen goes to out; exports are
// variables that a shell needs, besides the data directory, before the commands on it
// find this server.
func Run(ctx context.Context, cfg *config.Config, read func() (*config.Config, error), out io.Writer,
	exports []string,
) error {
	started := time.Now()
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP) // before anybody can know that the server is ready
	defer signal.Stop(hangUps)
	room := openRoom(cfg.DataDir)
	logger, err := telemetry.OpenLog(telemetry.LogOptions{
		Level: cfg.Log.Level, Format: cfg.Log.Format, File: cfg.LogPath(), Stderr: os.Stderr, Room: room.has,
	})
	if err != nil {
		return err
	}
	room.log.Store(logger.Logger)
	telemetry.LimitMemory()
	telemetry.BridgeKlog(logger.Logger)
	s := &server{
		cfg: cfg, logger: logger, log: logger.Logger, plan: planOf(cfg),
		access:  web.NewAccessLog(logger.Logger, accessMode(cfg), cfg.Log.AccessRate),
		metrics: telemetry.NewMetrics(version.Get()),
		limiter: web.NewLimiter(cfg.Limits.RequestsInFlight, int64(cfg.Limits.BodyMemory)),
		failed:  make(chan error, 4),
		ended:   make(chan struct{}),
		closers: []func() error{logger.Close},
		room:    room,
	}
	s.backups = s.newBackups()
	loaded := *cfg // as it was read, before open ports are written into it
	s.current.Store(&loaded)
	opening, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	s.abort = abort
	if err := s.open(opening); err != nil {
		if cause := context.Cause(opening); cause != nil && ctx.Err() == nil {
			err = cause // not what it led to
		}
		return errors.Join(err, s.close())
	}
	s.announce(out, exports, time.Since(started), s.plane.Health())
	err = s.wait(ctx, hangUps, read)
	return errors.Join(err, s.close())
}

// settings are the configuration as it is now. What needs a restart is as it was
// at the start.
func (s *server) settings() *config.Config { return s.current.Load() }

// wait returns when the context has ended or something has failed, and meanwhile
// obeys signals.
func (s *server) wait(ctx context.Context, hangUps <-chan os.Signal, read func() (*config.Config, error)) error {
	for {
		select {
		case <-ctx.Done():
			s.log.Info("stopping")
			return nil
		case err := <-s.failed:
			s.log.Error("stopping after a failure", slog.String("error", err.Error()))
			return err
		case <-hangUps:
			s.reload(ctx, read)
		}
	}
}

// open goes through the phases; what is open when one fails is closed by Run.
func (s *server) open(ctx context.Context) error {
	for _, phase := range []struct {
		name string
		open func(context.Context) error
	}{
		{"data directory", s.openDirectory},
		{"group", s.openGroup},
		{"ports", s.openPorts},
		{"members' port", s.openInternal},
		{"stream ports", s.openStreamPorts},
		{"first answers", s.answer},
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
		{"stream protocol", s.openStream},
		{"control socket", s.openControl},
	} {
		began := time.Now()
		if err := phase.open(ctx); err != nil {
			return err
		}
		s.log.Debug("phase done", slog.String("phase", phase.name), slog.Duration("took", time.Since(began)))
	}
	s.metrics.Registry().MustRegister(newCollector(s))
	s.front.serve(s.routes)
	s.room.started.Store(true)
	s.readiness.set()
	s.tellReady(ctx, true)
	return nil
}

func (s *server) openDirectory(context.Context) (err error) {
	if s.lock, err = lockDir(s.cfg.DataDir); err != nil {
		return err
	}
	s.closers = append(s.closers, s.lock.release, s.room.close)
	if err := s.room.own(); err != nil {
		return err
	}
	if _, err := os.Stat(s.cfg.Path(restoringDir)); err == nil {
		return fmt.Errorf("the data directory %s is not complete, a restore to it did not finish: run freshet "+
			"restore again", s.cfg.DataDir)
	}
	if _, err := os.Stat(s.cfg.Path(migrate.Folder)); err == nil {
		return fmt.Errorf("the data directory %s is not complete, what moves into it is not all there: run freshet "+
			"migrate again", s.cfg.DataDir)
	}
	if err := s.notAMembers(); err != nil {
		return err
	}
	return openFormats(s.cfg.DataDir, s.log)
}

// notAMembers refuses to run a server that is alone on the data directory of a member:
// what it would store there the group never had.
func (s *server) notAMembers() error {
	if s.cfg.Members.On() {
		return nil
	}
	if name := bundle.MemberIn(s.cfg.BundleDir()); name != "" {
		return errs.Newf(errs.Precondition,
			"%s is the data directory of member %s of a group, and the configuration has no members: "+
				"start it with the configuration that freshet cluster join wrote (--config), or choose another "+
				"directory with --data-dir", s.cfg.DataDir, name)
	}
	return nil
}

func (s *server) openPorts(ctx context.Context) (err error) {
	s.files = divideOpenFiles(s.cfg, s.log)
	s.sockets = make(connectionLimit, s.files.connections)
	if s.ports, err = listen(ctx, s.cfg, s.sockets); err != nil {
		return err
	}
	s.plan.BaseURL = s.cfg.PublicURL() // with the ports that are open
	s.closers = append(s.closers, func() error { s.ports.close(); return nil })
	return nil
}

// openEtcd starts the embedded member, or connects to the external ones;
// nothing behind this asks which.
func (s *server) openEtcd(ctx context.Context) error {
	zap := telemetry.ZapLogger(telemetry.Library(s.log, "etcd"))
	if !s.cfg.Etcd.External() {
		if err := resourcesMissing(s.cfg); err != nil {
			return err
		}
		peers, err := s.etcdGroup(ctx)
		if err != nil {
			return err
		}
		member, err := etcd.Start(ctx, s.cfg.Path("etcd"), etcd.Options{
			Logger: zap, Log: s.log, QuotaBytes: int64(s.cfg.Etcd.Quota), Group: peers,
		})
		if err != nil {
			return err
		}
		s.member, s.store = member, member
		s.closers = append(s.closers, member.Close)
		go func() {
			if err, ok := <-member.Failed(); ok && err != nil {
				err = fmt.Errorf("embedded etcd: %w", err)
				s.abort(err) // nothing that is still being opened would ever be ready
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
	return openEtcdFormat(ctx, client, s.cfg.Etcd.Prefix, s.log)
}

// resourcesMissing refuses to begin anew beside clusters that are there: they
// would be nobody's, and their callers would be told that they do not exist.
func resourcesMissing(cfg *config.Config) error {
	store := cfg.Path("etcd", "member", "snap", "db")
	if _, err := os.Stat(store); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if stores, err := filepath.Glob(cfg.Path("clusters", "*")); err == nil && len(stores) > 0 {
		return fmt.Errorf("the store of resources is missing: there is no %s, and %s has %d clusters; restore the "+
			"data directory from a backup, or start with a new one",
			store, cfg.Path("clusters"), len(stores))
	}
	return nil
}

func (s *server) openIdentity(ctx context.Context) (err error) {
	if s.identity, err = openIdentities(ctx, s.cfg, s.etcd); err != nil {
		return err
	}
	if s.group != nil {
		s.identity.directory.AskCurrent(s.group.members.Alive)
	}
	if err := s.withdrawer().obey(ctx); err != nil {
		return fmt.Errorf("withdrawing signing keys: %w", err)
	}
	return s.openPeople()
}

func (s *server) openPlane(context.Context) (err error) {
	if s.quotas, err = openQuotas(s.cfg); err != nil {
		return err
	}
	opts := s.planeOptions()
	if s.restored, err = openRestored(s.cfg); err != nil {
		return err
	}
	opts.MayLack = s.restored.mayLack
	shared, err := s.openShared()
	if err != nil {
		return err
	}
	if shared != nil {
		opts.Group = shared
	}
	if s.plane, err = dataplane.Open(opts); err != nil {
		return err
	}
	s.closers = append(s.closers, s.plane.Close)
	s.sharePlane(shared)
	return nil
}

// stopPatience is how long stopping may take after the requests have ended.
const stopPatience = 5 * time.Second

// close stops everything within the drain time and a little more, before which a member
// of a group hands over. What does not stop by then, on a disk that hangs say, ends with
// the process: whatever was acknowledged is durable.
func (s *server) close() error {
	patience := s.cfg.Timeouts.Drain.Std() + stopPatience
	if s.group != nil {
		patience += handOverTime
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.closeAll(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("stopping took too long and was cut off; what was acknowledged is on disk")
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
		streamed := s.stopStream(drain)
		if err := s.ports.shutdown(drain); err != nil {
			s.log.Warn("requests were cut off at the end of the drain time", slog.String("error", err.Error()))
		}
		<-streamed
		s.stopInternal(drain)
		cancel()
	}
	s.stopConfirming()
	<-led
	s.leaveGroup()
	if s.background != nil {
		s.background()
		<-s.ended
	}
	if s.api != nil {
		problems = append(problems, s.api.Stop(ctx))
	}
	for i := len(s.closers) - 1; i >= 0; i-- {
		problems = append(problems, s.closers[i]())
	}
	return errors.Join(problems...)
}

// checks are what /readyz asks besides the library's own.
func (s *server) checks() []apiserver.Check {
	list := []apiserver.Check{
		{Name: "startup", Healthy: s.readiness.check},
		{Name: "clusters", Healthy: s.plane.Health},
		{Name: "etcd-quota", Healthy: s.storeHealth},
	}
	return append(list, s.groupChecks()...)
}

// errStoreExhausted is about the service itself: what callers add is refused long
// before, by a server that is ready.
var errStoreExhausted = errors.New(
	"etcd is full and stores nothing any more; see docs/howto/operate.md#when-the-resource-store-is-full")

func (s *server) storeHealth() error {
	if s.store.Room().Exhausted {
		return errStoreExhausted
	}
	return nil
}

// endpoints says how to reach etcd, wherever it runs.
func (s *server) endpoints() etcd.Endpoints {
	if s.member != nil {
		return s.member.Endpoints()
	}
	return etcd.Endpoints{
		URLs: s.cfg.Etcd.Endpoints, CAFile: s.cfg.Etcd.CAFile, CertFile: s.cfg.Etcd.CertFile,
		KeyFile: s.cfg.Etcd.KeyFile,
	}
}
