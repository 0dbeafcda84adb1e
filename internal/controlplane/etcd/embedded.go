// Package etcd starts the embedded etcd member that keeps the resources, and
// describes how to reach an external one.
//
// It owns the member's life: open, ready, close. What is stored in it is the
// business of internal/controlplane/apiserver; nobody above asks whether the member is
// embedded or remote.
//
// The embedded member has no listener for clients. etcd trusts whoever reaches it,
// so it is reached from inside the process only. The store calls it
// (Endpoints.Call); what can only dial does so over pipes. A member that is alone
// listens nowhere; one of a group (group.go) listens for the other members, who show
// certificates (port.go).
//
// It never stays full: it is compacted and defragmented when that is worthwhile
// (maintain.go), and whoever writes for callers asks first how much room there is
// (room.go) and refuses early, so that what the service itself writes always
// finds some.
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
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"freshet/internal/base/cleanclose"
)

// Options tune an embedded member.
type Options struct {
	// Logger of the member; nothing is logged when nil.
	Logger *zap.Logger
	// Log is for what the member does by itself; nil: nothing is logged.
	Log *slog.Logger
	// QuotaBytes bounds what callers may have stored; 8 GiB when zero. The
	// service itself may go a little further (reserve).
	QuotaBytes int64
	// Unsafe leaves out fsync. For tests that do not look at durability.
	Unsafe bool
	// Group has the member run with others; nil: alone.
	Group *Group
}

const (
	defaultQuota = 8 << 30
	// snapshotEvery is after how many changes etcd takes a snapshot; a member that starts
	// applies what came since its last one, and takes no changes while more than 5,000
	// are left, which etcd's own 10,000 allow.
	snapshotEvery   = 4000
	maxRequestBytes = 2 << 20
	startTimeout    = 60 * time.Second
	// slow is what etcd warns about. Its own tenth of a second is meant for members
	// that others wait for; here it is a busy moment of the machine.
	slow = 2 * time.Second
	// oftenPings is how often clients may ping. They are of this process, and the API
	// machinery pings every half minute; by itself gRPC would take that for abuse, and
	// close the connection with all its watches after the third.
	oftenPings = time.Second
	// embeddedHost stands for the member in its own records; nobody resolves it.
	embeddedHost = "embedded:2379"
)

// started counts members: clients tell them apart by URL, and the API machinery
// keeps one compaction loop per URL and process.
var started atomic.Int64

// Member is a running embedded etcd.
type Member struct {
	etcd   *embed.Etcd
	server *grpc.Server
	pipes  *pipes
	port   *port // nil when it is alone
	url    string
	dir    string
	failed chan error
	closed chan struct{}
	lost   atomic.Bool // part of it has ended without the rest

	quota      int64 // of callers
	hard       int64 // of etcd
	log        *slog.Logger
	relieve    chan struct{} // asks maintain for compaction
	maintained chan struct{} // closed when maintain has ended
}

// Start runs a member that keeps its data in dir. One of a group is ready when there
// is a majority, however long that takes.
func Start(ctx context.Context, dir string, opts Options) (*Member, error) {
	opts.QuotaBytes = cmp.Or(opts.QuotaBytes, defaultQuota)
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the etcd directory: %w", err)
	}
	if err := Intact(dir); err != nil {
		return nil, damaged(dir, err)
	}
	if err := cleanclose.Forget(cleanclose.Dir(dir)); err != nil {
		return nil, fmt.Errorf("starting embedded etcd in %s: %w", dir, err)
	}
	if err := claimSegment(dir); err != nil {
		return nil, fmt.Errorf("starting embedded etcd in %s: %w", dir, err)
	}
	if opts.Group != nil {
		return opts.Group.start(ctx, dir, opts)
	}
	return startAlone(ctx, dir, opts)
}

func startAlone(ctx context.Context, dir string, opts Options) (*Member, error) {
	words := newLastWords()
	cfg, err := configure(dir, opts, words)
	if err != nil {
		return nil, err
	}
	e, err := words.start(cfg)
	if err != nil {
		return nil, startError(dir, err)
	}
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-e.Server.ReadyNotify():
		return serve(e, cfg, dir, words, opts), nil
	case err := <-words.said: // nothing of it can be closed in good order
		return nil, startError(dir, err)
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

// startError says what kept the member from starting. With a disk that works, that
// is what the files hold.
func startError(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("starting embedded etcd in %s: %w", dir, err)
	}
	return damaged(dir, err)
}

func configure(dir string, opts Options, words *lastWords) (*embed.Config, error) {
	cfg := embed.NewConfig()
	cfg.Name = "freshet"
	cfg.Dir = dir
	cfg.ListenClientUrls, cfg.ListenPeerUrls = nil, nil
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: embeddedHost}}
	// The advertised peer URL is part of the member's stored identity; nobody
	// ever dials it.
	advertised := url.URL{Scheme: "http", Host: "localhost:2380"}
	cfg.AdvertisePeerUrls = []url.URL{advertised}
	cfg.InitialCluster = cfg.Name + "=" + advertised.String()
	// One member elects itself: short ticks make that quick.
	cfg.TickMs, cfg.ElectionMs = 10, 50
	if opts.Group != nil {
		opts.Group.configure(cfg)
	}
	cfg.QuotaBackendBytes = max(opts.QuotaBytes, fileSize(dir)) + reserve(opts.QuotaBytes)
	cfg.MaxRequestBytes = maxRequestBytes
	cfg.SnapshotCount = snapshotEvery
	cfg.AutoCompactionRetention = "0" // the resource API compacts
	cfg.UnsafeNoFsync = opts.Unsafe
	cfg.WarningApplyDuration, cfg.WarningUnaryRequestDuration = slow, slow
	log := opts.Logger
	if log == nil {
		log = zap.NewNop()
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(words.guard(log))
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring embedded etcd: %w", err)
	}
	return cfg, nil
}

// reserve is what the service itself may store beyond the quota of callers:
// deletions, revocations, conditions, signing keys. A store that is larger than
// its quota when it is opened gets it on top of what it has, so that a server can
// always start and let its callers delete.
func reserve(quota int64) int64 { return max(quota/4, 32<<20) }

// fileSize is that of a member's store, 0 for a new one.
func fileSize(dir string) int64 {
	info, err := os.Stat(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// serve answers clients inside the process.
func serve(e *embed.Etcd, cfg *embed.Config, dir string, words *lastWords, opts Options) *Member {
	pings := grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime:             oftenPings,
		PermitWithoutStream: true,
	})
	m := &Member{
		dir:  dir,
		etcd: e, server: v3rpc.Server(e.Server, nil, nil, pings), pipes: newPipes(),
		url:    fmt.Sprintf("http://embedded-%d:2379", started.Add(1)),
		failed: make(chan error, 3), closed: make(chan struct{}),
		quota: opts.QuotaBytes, hard: cfg.QuotaBackendBytes, log: opts.Log,
		relieve: make(chan struct{}, 1), maintained: make(chan struct{}),
	}
	go func() {
		if err := m.server.Serve(m.pipes); err != nil {
			m.fail(fmt.Errorf("serving clients: %w", err))
		}
	}()
	go func() {
		select {
		case err := <-words.said:
			m.lost.Store(true)
			m.fail(err)
		case <-e.Server.StopNotify():
			m.fail(errors.New("the member stopped"))
		}
	}()
	m.recoverSpace()
	go m.maintain()
	return m
}

// fail reports what ended the member, unless that was Close.
func (m *Member) fail(err error) {
	select {
	case <-m.closed:
	default:
		m.failed <- err
	}
}

// Endpoints says how to reach the member: only from inside this process.
func (m *Member) Endpoints() Endpoints {
	return Endpoints{
		URLs: []string{m.url}, Dial: m.pipes.dial,
		Call: func() *clientv3.Client { return v3client.New(m.etcd.Server) },
	}
}

// Failed delivers the error that ended the member, if one ever does.
func (m *Member) Failed() <-chan error { return m.failed }

// stepDownPatience is how long a leader waits for another member to take its place.
// When all members end at the same time there is none.
const stepDownPatience = 2 * time.Second

// stop stops the server; a leader makes another member the leader first, if it can.
func (m *Member) stop() {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		m.server.Stop()
		m.etcd.Server.Stop()
	}()
	timer := time.NewTimer(stepDownPatience)
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
	<-m.maintained
	if m.port != nil {
		defer m.port.close()
	}
	m.stop()
	if m.lost.Load() {
		return nil // it would wait for what has ended already
	}
	m.etcd.Close()
	_ = noteClose(m.dir) // as after a crash then: the next start looks at everything
	return nil
}
