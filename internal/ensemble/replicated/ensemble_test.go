package replicated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
	"freshet/internal/storage/pebble"
)

const (
	// leaseSeconds is the time to live of the members' leases. It is longer than a test waits
	// for the processor on a busy machine.
	leaseSeconds = 30
	// killedSeconds is the time to live where a test waits for a lease to expire.
	killedSeconds = 4
)

// testEnsemble is the infrastructure that members share: etcd and the servers of the log.
type testEnsemble struct {
	t    testing.TB
	etcd *etcd.Member
	nats *natstest.Cluster
	next atomic.Int64 // number of clusters created

	lease int // seconds
}

func newTestEnsemble(t testing.TB, servers int, opts ...natstest.Option) *testEnsemble {
	t.Helper()
	m, err := etcd.Start(context.Background(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatalf("start etcd: got error %v, want none", err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close etcd: got error %v, want none", err)
		}
	})
	return &testEnsemble{t: t, etcd: m, nats: natstest.New(t, servers, opts...), lease: leaseSeconds}
}

// team is the members with copies of one shard.
type team struct {
	g       *testEnsemble
	cluster string
	number  int
	dir     string

	mu   sync.Mutex
	live []string
}

func (g *testEnsemble) team() *team {
	return &team{g: g, cluster: fmt.Sprintf("c%d", g.next.Add(1)), dir: g.t.TempDir()}
}

// Live implements Members.
func (tm *team) Live() []string {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return slices.Clone(tm.live)
}

func (tm *team) join(name string, in bool) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	tm.live = slices.DeleteFunc(tm.live, func(n string) bool { return n == name })
	if in {
		tm.live = append(tm.live, name)
		slices.Sort(tm.live)
	}
}

// member simulates a separate process: it has connections, a lease and a disk of its own.
type member struct {
	*Shard
	team   *team
	name   string
	client *clientv3.Client
	lease  *watchedLease
	js     jetstream.JetStream
	fs     *vfs.MemFS // nil for the real file system
	cancel context.CancelFunc
	wire   wire

	lastEpoch uint64
}

// wire is a member's connection to etcd, which can be cut.
type wire struct {
	dialer etcd.Dialer

	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

var errCut = errors.New("the wire is cut")

func (w *wire) endpoints(e etcd.Endpoints) etcd.Endpoints {
	w.dialer = e.Dialer
	e.Dialer = w
	return e
}

// Dial implements etcd.Dialer.
func (w *wire) Dial(ctx context.Context) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return nil, errCut
	}
	conn, err := w.dialer.Dial(ctx)
	if err == nil {
		w.conns = append(w.conns, conn)
	}
	return conn, err
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// start starts a member on a file system in memory, or on the real one when fs is nil.
func (tm *team) start(t testing.TB, name string, server int, fs *vfs.MemFS, change ...func(*Options)) *member {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{team: tm, name: name, fs: fs, cancel: cancel}
	var err error
	m.client, err = m.wire.endpoints(tm.g.etcd.Endpoints()).Client(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	m.lease = watchLease(ctx, t, m.client, tm.g.lease)
	conn, err := nats.Connect("", nats.InProcessServer(tm.g.nats.Dialer(server)), nats.Timeout(30*time.Second),
		nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		t.Fatal(err)
	}
	if m.js, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Cluster: tm.cluster, Number: tm.number, Dir: tm.dir + "/" + name,
		JetStream: m.js, Replicas: tm.g.nats.Size(),
		Etcd: m.client, Lease: m.lease,
		Prefix: "/shards", Member: name, Members: tm,
		Store: pebble.Options{
			Splitter: enginetest.Lines{}, MemTableBytes: 1 << 20, EraBytes: 1 << 10,
			TrimDelay: 300 * time.Millisecond,
		},
		Settle: time.Hour,
	}
	if fs != nil {
		o.Store.FS = fs
	}
	if os.Getenv("FRESHET_TEST_LOG") != "" {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With(
			slog.String("test", t.Name()), slog.String("member", name))
	}
	for _, f := range change {
		f(&o)
	}
	if m.Shard, err = Open(ctx, o); err != nil {
		t.Fatalf("open: got error %v, want none", err)
	}
	tm.join(name, true)
	return m
}

// awaitOwner waits until the member is the owner, and returns its engine.
func (m *member) awaitOwner(t testing.TB) engine.Engine {
	t.Helper()
	deadline := time.After(testTimeout)
	for {
		changed := m.Changed()
		if e, err := m.Engine(); err == nil && m.o.Lease.Alive() {
			return e
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("got no engine on member %s, want one: %+v", m.name, m.Status())
		}
	}
}

// awaitApplied waits until the member's copy has the log up to the message to.
func (m *member) awaitApplied(t testing.TB, to uint64) {
	t.Helper()
	deadline := time.After(testTimeout)
	for m.applied.Load() < to {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatalf("got a copy of member %s up to message %d, want %d: %+v", m.name, m.applied.Load(), to, m.Status())
		}
	}
}

// awaitOwnerSeen waits until the member sees that owner serves the shard.
func (m *member) awaitOwnerSeen(t testing.TB, owner string) {
	t.Helper()
	deadline := time.After(testTimeout)
	for {
		changed := m.Changed()
		if m.Owner().Member == owner {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("got owner %+v on member %s, want %s", m.Owner(), m.name, owner)
		}
	}
}

// stop shuts down the member gracefully.
func (m *member) stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := m.HandOver(ctx); err != nil {
		t.Errorf("hand over: got error %v, want none", err)
	}
	m.team.join(m.name, false)
	if err := m.Shard.Close(); err != nil {
		t.Errorf("close: got error %v, want none", err)
	}
	m.cancel()
	_ = m.lease.Session().Close()
	_ = m.client.Close()
	m.js.Conn().Close()
}

// kill ends the member like a power cut: it sends nothing more, its lease expires, and its
// disk keeps the synced data.
func (m *member) kill(t testing.TB) *vfs.MemFS {
	t.Helper()
	left := m.crash()
	m.abandon(t)
	return left
}

// crash cuts the member's power; abandon releases its resources in this process.
func (m *member) crash() *vfs.MemFS {
	left := m.fs.CrashClone(vfs.CrashCloneCfg{})
	m.wire.cut()
	m.js.Conn().Close()
	m.team.join(m.name, false)
	m.mu.Lock()
	w := m.writer
	m.mu.Unlock()
	if w != nil {
		w.lose(errCut) // waiters in a killed process would not exist
	}
	return left
}

func (m *member) abandon(t testing.TB) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = m.client.Close()
		m.cancel()
		if err := m.Shard.Close(); err != nil {
			t.Errorf("close after the power cut: got error %v, want none", err)
		}
	}()
	t.Cleanup(func() { <-closed })
}

// ownerRevision returns the revision of the owner key while this member has it, and 0 when it has
// lost it, so that a test does not delete another member's key.
func (m *member) ownerRevision() int64 {
	for {
		changed := m.Changed()
		m.mu.Lock()
		rev, mine, serves := m.view.ownerRev, m.view.owner.Instance == m.instance, m.engine != nil
		m.mu.Unlock()
		switch {
		case mine:
			return rev
		case !serves || m.ctx.Err() != nil:
			return 0
		}
		<-changed
	}
}

func (m *member) epoch() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.writer == nil {
		return 0
	}
	return m.writer.epoch
}

// fence appends to the log like another member that believes to be the owner.
func (m *member) fence() {
	m.mu.Lock()
	st, w := m.stream, m.writer
	m.mu.Unlock()
	if st == nil || w == nil {
		return
	}
	for {
		state, err := st.state(context.Background())
		if err != nil {
			continue
		}
		last, err := st.read(context.Background(), nil, state.LastSeq)
		if err != nil {
			continue
		}
		rival, err := newWriter(st,
			logPosition{log: st.id, seq: last.seq, epoch: last.epoch, index: last.index, sum: last.sum}, "rival",
			func() bool { return true }, 1<<30, nil, nil)
		if err != nil {
			return
		}
		_, err = rival.begin()
		rival.close(errRival)
		if err == nil {
			return
		}
	}
}

// Changed returns a channel that is closed when the owner or the role of this member
// may have changed.
func (s *Shard) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
