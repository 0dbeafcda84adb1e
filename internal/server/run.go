// Package server composes the service: stores, identity, the resource API with its
// controllers, the data plane, and one router over all surfaces.
//
// It is the only package that imports all others. Run opens the phases in order and closes
// them in reverse: the server first stops accepting connections, then waiting callers get
// their responses, then the controllers, the resource API, the clusters and etcd stop.
//
// It has no policy of its own: what a part does is in the package of the part, and the files
// here only pass configuration and parts to other parts. The commands that work on the data of
// a whole system are beside it: check, migrate, restore, sealed, staging.
//
// It has no locks. The data directory is locked by ops/datadir as long as the server runs.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/unpacking"
	"freshet/internal/base/version"
	"freshet/internal/base/web"
	"freshet/internal/broker/history"
	"freshet/internal/config"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/controlplane/pools"
	"freshet/internal/dataplane"
	"freshet/internal/ensemble"
	"freshet/internal/identity/signin"
	"freshet/internal/ops/audit"
	"freshet/internal/ops/backup"
	"freshet/internal/ops/certificates"
	"freshet/internal/ops/datadir"
	"freshet/internal/ops/disk"
	"freshet/internal/ops/listen"
	"freshet/internal/ops/quota"
	"freshet/internal/ops/systemd"
	"freshet/internal/ops/telemetry"
	"freshet/internal/server/banner"
	"freshet/internal/server/restore"
	"freshet/internal/server/staging"
	"freshet/internal/surfaces/refusal"
)

// server contains all running parts.
type server struct {
	cfg      *config.Config
	settings currentSettings
	logger   *telemetry.Log
	log      *slog.Logger
	access   *web.AccessLog
	metrics  *telemetry.Metrics
	plan     *pools.Plan

	start     *datadir.Start // what the data directory had before this start
	stored    bool           // whether this start may have stored something
	reserve   *disk.Reserve
	restored  *restore.FirstStart
	servers   servers                // this server's part in its ensemble
	topology  topology               // what a single server and a member do differently
	waitsFor  atomic.Pointer[string] // what a starting server waits for, for the health pages
	systemd   *systemd.Notifier
	unwatch   context.CancelFunc // ends the reports to systemd that the server is alive
	ports     portSet
	member    *etcd.Member // nil if etcd is external
	store     etcd.Store   // reports how full etcd is
	limiter   *web.Limiter
	unpacking *unpacking.Budget
	etcd      *clientv3.Client
	identity  *identitySet
	signIn    *signin.Service
	link      string       // sign-in link of the first start; "" at later starts
	audit     *audit.Trail // nil if the audit log is off
	quotas    *quota.Organizations
	plane     *dataplane.Plane
	clusters  clusterPlane // runs clusters on plane, for their controller
	history   *history.Recorder
	kafka     kafkaServer
	api       *apiserver.Server
	kinds     *kinds.Set
	loops     *kinds.Controllers
	readiness readiness
	front     refusal.Front // handler of the ports
	ending    atomic.Bool   // responses close their connections
	routes    http.Handler  // handler that front serves after the last phase
	stager    *staging.Stager
	backups   *backup.Schedule

	controllers running // the controllers
	failed      chan error
	abort       context.CancelCauseFunc // cancels the phases that are being opened
	closers     []func() error          // in the order of opening
}

// portSet contains the HTTP ports, and what they share with the ports of the Kafka protocol.
type portSet struct {
	http   *listen.Ports
	budget listen.Budget
	shared listen.Limit // for the connections of all listeners
	tls    *tls.Config
	certs  *certificates.Files // nil with the server's own certificate authority
}

// running is work in the background. The zero value is work that has not started.
type running struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when the work has ended
}

// stop cancels the work and waits for its end.
func (r *running) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.ended
	}
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
	start := datadir.NewStart(cfg.DataDir)
	room := disk.OpenReserve(cfg.DataDir, etcd.Segment)
	stderr, showLog := banner.LogWriter(cfg, os.Stderr)
	defer showLog()
	logger, err := telemetry.OpenLog(telemetry.LogOptions{
		Level: cfg.Log.Level, Format: cfg.Log.Format, File: cfg.LogPath(), Stderr: stderr, Disk: room,
	})
	if err != nil {
		return err
	}
	room.SetLogger(logger.Logger)
	telemetry.LimitMemory()
	telemetry.BridgeKlog(logger.Logger)
	s := &server{
		cfg: cfg, logger: logger, log: logger.Logger, plan: planOf(cfg),
		access:    web.NewAccessLog(logger.Logger, accessMode(cfg), cfg.Log.AccessRate),
		metrics:   telemetry.NewMetrics(version.Get()),
		limiter:   web.NewLimiter(cfg.Limits.RequestsInFlight, int64(cfg.Limits.BodyMemory)),
		unpacking: unpacking.New(int64(cfg.Limits.UnpackMemory)),
		failed:    make(chan error, 4),
		systemd:   systemd.Open(logger.Logger),
		unwatch:   func() {},
		start:     start,
		reserve:   room,
		servers:   ensemble.Single{}, // until a member has read its certificate
	}
	s.closers = []func() error{logger.Close, s.systemd.Close}
	s.topology = newTopology(s)
	loaded := *cfg // a copy from before the addresses of open ports are written into cfg
	s.settings.Store(&loaded)
	opening, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	s.abort = abort
	if err := s.open(opening); err != nil {
		if cause := context.Cause(opening); cause != nil && ctx.Err() == nil {
			err = cause // instead of the error that the cancellation caused
		}
		return errors.Join(err, s.close())
	}
	banner.Announce(s.log, out, banner.Options{
		Config: cfg, PortsInUse: s.kafka.portsInUse, Link: s.link,
		Program: banner.CommandName(os.Args[0]), Exports: exports,
	}, time.Since(started), s.plane.Health())
	showLog()
	s.startNotifying()
	err = s.wait(ctx, hangUps, read)
	return errors.Join(err, s.close())
}

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
			s.systemd.Reloading()
			s.reload(ctx, read)
			s.systemd.Ready(s.stateLine())
		}
	}
}

// stopTimeout is the timeout for stopping after the requests have finished.
const stopTimeout = 5 * time.Second

// close stops everything within the drain time plus stopTimeout; a member of an ensemble
// also gets the time to hand its shards over. Parts that do not stop in time, for example
// because a disk hangs, end with the process. Acknowledged data is durable.
func (s *server) close() error {
	timeout := s.cfg.Timeouts.Drain.Std() + stopTimeout + s.servers.StopTime()
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
	s.systemd.Stopping()
	s.unwatch() // without waiting, because the check may hang
	s.readiness.unset()
	s.ending.Store(true)
	s.servers.Retire()
	led := s.servers.StopLeading(ctx)
	var problems []error
	if s.plane != nil {
		s.handOver(ctx)
		s.plane.Drain()
	}
	if s.api != nil {
		s.api.Drain()
	}
	if s.ports.http != nil {
		drain, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Drain.Std())
		streamed := s.stopKafka(drain)
		if err := s.ports.http.Shutdown(drain); err != nil {
			s.log.Warn("requests were aborted at the end of the drain time", slog.Any("error", err))
		}
		<-streamed
		s.servers.Shutdown(drain)
		cancel()
	}
	s.servers.StopConfirming()
	<-led
	s.servers.Leave()
	s.controllers.stop()
	if s.api != nil {
		problems = append(problems, s.api.Stop(ctx))
	}
	for i := len(s.closers) - 1; i >= 0; i-- {
		problems = append(problems, s.closers[i]())
	}
	return errors.Join(problems...)
}

// handOver hands the shards of this server over to other members.
func (s *server) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, ensemble.HandOverTimeout)
	defer cancel()
	s.plane.HandOver(ctx)
}

// checks returns the checks of /readyz in addition to those of the API server library.
func (s *server) checks() []apiserver.Check {
	list := []apiserver.Check{
		{Name: "startup", Healthy: s.readiness.check},
		{Name: "clusters", Healthy: s.plane.Health},
		{Name: "etcd-quota", Healthy: func() error { return s.store.Space().Health() }},
	}
	return append(list, s.topology.checks()...)
}

// readiness is true from the end of the last phase until the shutdown starts.
type readiness struct{ ready atomic.Bool }

func (r *readiness) set()   { r.ready.Store(true) }
func (r *readiness) unset() { r.ready.Store(false) }

func (r *readiness) check() error {
	if !r.ready.Load() {
		return errors.New("server is starting or stopping")
	}
	return nil
}

// startNotifying reports to systemd that the server is ready, and from then on that it is alive, until
// it stops.
func (s *server) startNotifying() {
	s.systemd.Ready(s.stateLine())
	ctx, cancel := context.WithCancel(context.Background())
	s.unwatch = cancel
	go s.systemd.Watch(ctx, web.Probe(&s.front, "/livez"))
}

// stateLine describes a server that is ready in one line.
func (s *server) stateLine() string {
	line := "serving " + s.cfg.PublicURL() + ", version " + version.Get().Version
	if err := s.plane.Health(); err != nil {
		return line + "; not all of it works: " + err.Error()
	}
	return line
}
