// Package etcd starts the embedded etcd member that stores the resources, and describes how to
// reach an external etcd.
//
// It owns the member's life cycle (open, ready, close), its space (compaction, defragmentation,
// quota) and its files (snapshot, restore, seed, damage check). A member of an ensemble compares its
// content with that of the others (compare.go). internal/controlplane/apiserver owns the stored
// objects. Packages above this one do not distinguish an embedded member from a remote one.
//
// The embedded member has no listener for clients. etcd trusts every client that can connect, so
// clients connect from inside the process only: the store calls it directly (Member.Client), and
// code that must dial uses in-process pipes. A single member opens no port; a member of an ensemble
// (ensemble.go) opens one for its peers, which authenticate with certificates (peerserver.go).
//
// The member does not stay full. It compacts and defragments its store when that is worthwhile
// (maintain.go). Code that writes on behalf of callers checks the free space first (space.go) and
// rejects early, so that the service's own writes always succeed.
//
// The package has no mutexes: members and observers share state through atomics and channels.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"freshet/internal/base/cleanclose"
	"freshet/internal/base/pipe"
)

// Options tune an embedded member.
type Options struct {
	// Logger of the member; nothing is logged when nil.
	Logger *zap.Logger
	// Log receives the records about maintenance and joining; nothing is logged when nil.
	Log *slog.Logger
	// QuotaBytes limits the bytes that callers may store; 8 GiB when zero. The service itself may
	// exceed it by reserve.
	QuotaBytes int64
	// Advice completes the error about damaged files: what the operator should do. "" means to restore
	// a backup.
	Advice string
	// ReportDamage is called when a running member of an ensemble finds that its content differs from that
	// of the others, before it fails. nil ignores the report.
	ReportDamage func(cause error)
	// Unsafe skips fsync. For tests that do not check durability.
	Unsafe bool
}

const (
	defaultQuota = 8 << 30
	// snapshotCount is the number of changes between two etcd snapshots. A starting member applies
	// the changes since its last snapshot and rejects new ones while more than 5,000 are left;
	// etcd's default of 10,000 would allow that.
	snapshotCount   = 4000
	maxRequestBytes = 2 << 20
	startTimeout    = 60 * time.Second
	// slowRequest is the duration from which etcd warns about a request. etcd's default of 100 ms suits
	// members on which others wait; here it would only report a busy machine.
	slowRequest = 2 * time.Second
	// minPingInterval is the minimum interval between client pings. The clients run in this process and
	// the API machinery pings every 30 s; with gRPC's default policy the server would close the
	// connection with all its watches after the third ping.
	minPingInterval = time.Second
	// embeddedHost stands for the member in its own records; it is never resolved.
	embeddedHost = "embedded:2379"
)

// started counts members. Each gets a URL of its own, because clients identify members by URL and
// the API machinery runs one compaction loop per URL and process.
var started atomic.Int64

// Member is a running embedded etcd.
type Member struct {
	etcd       *embed.Etcd
	server     *grpc.Server
	watches    *watches // of direct clients
	pipes      *pipe.Listener
	peerServer *peerServer // nil for a single member
	url        string
	dir        string
	failed     chan error
	closed     chan struct{}
	crashed    atomic.Bool // a goroutine of etcd has ended without the rest

	callerQuota     int64 // bytes that callers may store
	backendQuota    int64 // bytes after which etcd itself rejects writes
	log             *slog.Logger
	compactRequests chan struct{} // requests compaction from maintain
	maintainDone    chan struct{} // closed when maintain has ended
	compareDone     chan struct{} // closed when watchContent has ended; nil if it does not run
}

// Start starts a single member that stores its data in dir. Join starts a member of an ensemble.
func Start(ctx context.Context, dir string, opts Options) (*Member, error) {
	if err := opts.prepare(dir); err != nil {
		return nil, err
	}
	crashes := newCrashGuard()
	cfg, err := configure(dir, opts, crashes, configureSingle)
	if err != nil {
		return nil, err
	}
	e, err := crashes.start(cfg)
	if err != nil {
		return nil, opts.startError(dir, err)
	}
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-e.Server.ReadyNotify():
		return serve(e, cfg, dir, crashes, opts), nil
	case err := <-crashes.crashed: // the goroutine has ended, so etcd cannot be closed in order
		return nil, opts.startError(dir, err)
	case <-e.Server.StopNotify():
		err = errors.New("member stopped while starting")
	case <-timer.C:
		err = fmt.Errorf("member was not ready within %s", startTimeout)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.Close()
	return nil, fmt.Errorf("starting embedded etcd in %s: %w", dir, err)
}

// prepare sets the defaults and prepares the directory of a member that is about to start.
func (o *Options) prepare(dir string) error {
	o.QuotaBytes = cmp.Or(o.QuotaBytes, defaultQuota)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the etcd directory: %w", err)
	}
	if err := Intact(dir); err != nil {
		damage := o.damagedError(dir, err)
		damage.InFiles = true
		return damage
	}
	if err := cleanclose.Forget(cleanclose.Dir(dir)); err != nil {
		return fmt.Errorf("starting embedded etcd in %s: %w", dir, err)
	}
	if err := reserveSegment(dir); err != nil {
		return fmt.Errorf("starting embedded etcd in %s: %w", dir, err)
	}
	return nil
}

// startError wraps an error that kept the member from starting. Unless the disk is full or
// unreadable, damaged files are the cause.
func (o *Options) startError(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("starting embedded etcd in %s: %w", dir, err)
	}
	// The files passed the check, so it is a value in the tree, which has no checksum, or the log.
	return o.damagedError(dir, fmt.Errorf("member/snap/db or member/wal: %w", err))
}

// configureSingle adds the settings of a single member to cfg.
func configureSingle(cfg *embed.Config) {
	cfg.Name = "freshet"
	// The advertised peer URL is part of the member's stored identity; it is never dialed.
	advertised := url.URL{Scheme: "http", Host: "localhost:2380"}
	cfg.AdvertisePeerUrls = []url.URL{advertised}
	cfg.InitialCluster = cfg.Name + "=" + advertised.String()
	// A single member elects itself; short ticks make that fast.
	cfg.TickMs, cfg.ElectionMs = 10, 50
}

// configure returns the configuration of a member. identify adds the settings that differ
// between a single member and a member of an ensemble.
func configure(dir string, opts Options, crashes *crashGuard, identify func(*embed.Config)) (*embed.Config, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ListenClientUrls, cfg.ListenPeerUrls = nil, nil
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: embeddedHost}}
	identify(cfg)
	cfg.QuotaBackendBytes = max(opts.QuotaBytes, fileSize(dir)) + reserve(opts.QuotaBytes)
	cfg.MaxRequestBytes = maxRequestBytes
	cfg.SnapshotCount = snapshotCount
	cfg.AutoCompactionRetention = "0" // the resource API compacts
	cfg.UnsafeNoFsync = opts.Unsafe
	cfg.WarningApplyDuration, cfg.WarningUnaryRequestDuration = slowRequest, slowRequest
	log := opts.Logger
	if log == nil {
		log = zap.NewNop()
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(crashes.hook(log))
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring embedded etcd: %w", err)
	}
	return cfg, nil
}

// reserve returns the bytes that the service itself may store beyond the quota of callers:
// deletions, revocations, conditions, signing keys. A store that is larger than its quota when it
// is opened gets the reserve on top of its size, so that a server can always start and let its
// callers delete.
func reserve(quota int64) int64 { return max(quota/4, 32<<20) }

// fileSize returns the size of a member's store, 0 for a new one.
func fileSize(dir string) int64 {
	info, err := os.Stat(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// serve serves clients inside the process.
func serve(e *embed.Etcd, cfg *embed.Config, dir string, crashes *crashGuard, opts Options) *Member {
	pings := grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime:             minPingInterval,
		PermitWithoutStream: true,
	})
	m := &Member{
		dir:  dir,
		etcd: e, server: v3rpc.Server(e.Server, nil, nil, pings, grpc.WaitForHandlers(true)),
		watches: newWatches(e.Server), pipes: pipe.New(embeddedHost),
		url:    fmt.Sprintf("http://embedded-%d:2379", started.Add(1)),
		failed: make(chan error, 4), closed: make(chan struct{}),
		callerQuota: opts.QuotaBytes, backendQuota: cfg.QuotaBackendBytes, log: opts.Log,
		compactRequests: make(chan struct{}, 1), maintainDone: make(chan struct{}),
	}
	go func() {
		if err := m.server.Serve(m.pipes); err != nil {
			m.fail(fmt.Errorf("serving clients: %w", err))
		}
	}()
	go func() {
		select {
		case err := <-crashes.crashed:
			m.crashed.Store(true)
			m.fail(err)
		case <-e.Server.StopNotify():
			m.fail(errors.New("etcd member stopped"))
		}
	}()
	m.recoverSpace()
	go m.maintain()
	return m
}

// fail reports the error that ended the member, unless Close ended it.
func (m *Member) fail(err error) {
	select {
	case <-m.closed:
	default:
		m.failed <- err
	}
}

// Endpoints returns how to reach the member, which works from inside this process only.
func (m *Member) Endpoints() Endpoints {
	return Endpoints{URLs: []string{m.url}, Dialer: m.pipes, Member: m}
}

// Client creates a client that calls the member directly, without connections and encoded messages.
// The caller closes the client.
func (m *Member) Client() *clientv3.Client {
	client := v3client.New(m.etcd.Server)
	client.Watcher = clientv3.NewWatchFromWatchClient(adapter.WatchServerToWatchClient(m.watches), client)
	return client
}

// Failed delivers the error that ended the member, if one occurs.
func (m *Member) Failed() <-chan error { return m.failed }

// stepDownTimeout bounds the wait for another member to become leader. When all members stop at
// the same time, none does.
const stepDownTimeout = 2 * time.Second

// stop stops the server. A leader first tries to transfer leadership to another member.
func (m *Member) stop() {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		m.watches.stop()
		m.server.Stop()
		m.etcd.Server.Stop()
	}()
	timer := time.NewTimer(stepDownTimeout)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C:
		m.etcd.Server.HardStop()
		<-stopped
	}
}

// Close stops the member. It is called once.
func (m *Member) Close() error {
	close(m.closed)
	<-m.maintainDone
	if m.compareDone != nil {
		<-m.compareDone
	}
	if m.peerServer != nil {
		defer m.peerServer.close()
	}
	m.stop()
	if m.crashed.Load() {
		return nil // Close would wait for the goroutine that has ended
	}
	m.etcd.Close()
	_ = recordClose(m.dir) // without the record the next start checks every file, as after a crash
	return nil
}
