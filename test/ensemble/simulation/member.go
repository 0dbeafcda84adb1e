package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/broker/groups"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/journal"
	"freshet/internal/ensemble/membership"
	"freshet/internal/ensemble/replicated"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
	"freshet/internal/storage/pebble"
	"freshet/test/ensemble/simulation/etcdsim"
	"freshet/test/ensemble/simulation/natssim"
)

const (
	shardCount  = 2
	clusterID   = "c1"
	journalName = "catalogue"

	membersPrefix  = "/members"
	shardsPrefix   = "/shards"
	journalsPrefix = "/journals"
	leaseTTL       = 3 * time.Second

	verifyInterval = 8 * time.Second // of the tables of a copy
)

// member is one run of a member, from its start to its stop or crash.
type member struct {
	name     string
	fs       *vfs.MemFS
	cancel   context.CancelFunc
	etcd     *etcdsim.Link
	nats     *natssim.Link
	client   *clientv3.Client
	conn     *nats.Conn
	lease    *membership.Ensemble
	shards   []*replicated.Shard
	home     string // directory on a real disk
	register *integrity.Register
	all      *journal.Journals
	journal  engine.Journal
	handler  http.Handler // for the other members
	groups   *groups.Coordinator
	crashed  atomic.Bool

	staleUntil atomic.Int64 // Unix time in nanoseconds until which its reads may be stale
}

// Live implements replicated.Members.
func (m *member) Live() []string {
	var names []string
	for _, r := range m.lease.Live() {
		names = append(names, r.Name)
	}
	return names
}

// start starts a member on a file system. It retries as a process manager does, until the member
// runs or the context ends.
func (w *world) start(ctx context.Context, name string, fs *vfs.MemFS) (*member, error) {
	for {
		m, err := w.tryStart(ctx, name, fs)
		if err == nil || ctx.Err() != nil {
			return m, err
		}
		w.log.Info("member did not start", slog.String("member", name), slog.Any("error", err))
		time.Sleep(time.Second)
	}
}

func (w *world) tryStart(ctx context.Context, name string, fs *vfs.MemFS) (_ *member, err error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m := &member{name: name, fs: fs, home: w.homes[name], cancel: cancel, etcd: w.etcd.Link(), nats: w.nats.Link(name)}
	m.handler = m.serve()
	defer func() {
		if err != nil {
			m.close(w)
		}
	}()
	m.client = m.etcd.Client(running)
	m.conn, err = nats.Connect("", nats.InProcessServer(m.nats), nats.Timeout(5*time.Second), nats.MaxReconnects(-1),
		nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1),
		nats.RetryOnFailedConnect(true))
	if err != nil {
		return nil, err
	}
	log := w.log.With(slog.String("member", name))
	if m.register, err = integrity.Open(m.home, integrity.Options{Logger: log}); err != nil {
		return nil, err
	}
	m.lease, err = membership.Open(ctx, membership.Options{
		Etcd: m.client, Prefix: membersPrefix, Self: membership.Record{Name: name}, TTL: leaseTTL, Log: log,
	})
	if err != nil {
		return nil, err
	}
	js, err := m.nats.JetStream(m.conn)
	if err != nil {
		return nil, err
	}
	m.all, err = journal.Open(ctx, m.conn, journal.Options{
		Prefix: clusterID, Replicas: natssim.Replicas, Etcd: m.client, Keys: journalsPrefix, Dir: m.copies(),
		Member: name, All: names, Peers: &network{w, m}, Session: m.lease.Session, Integrity: m.register,
		Logger: log,
	})
	if err != nil {
		return nil, err
	}
	if m.journal, err = m.all.Journal(ctx, journalName); err != nil {
		return nil, err
	}
	if m.groups, err = groups.OpenMember(ctx, m.all, groups.Options{Logger: log}); err != nil {
		return nil, err
	}
	for number := range shardCount {
		shard, err := replicated.Open(running, replicated.Options{
			Cluster: clusterID, Number: number, Dir: w.shardDir(name, number),
			JetStream: js, Replicas: natssim.Replicas, Etcd: m.client, Lease: m.lease, Prefix: shardsPrefix,
			Member: name, Members: m, Peers: &network{w, m}, Settle: 2 * time.Second,
			Ownership:     &coordination{m: m, shard: number, log: log},
			FlushInterval: 3 * time.Second, GoneAfter: w.goneAfter, VerifyInterval: verifyInterval,
			Integrity: m.register, Logger: log,
			Store: pebble.Options{FS: fs, Splitter: enginetest.Lines{}, MemTableBytes: 256 << 10, EraBytes: 1 << 10},
		})
		if err != nil {
			return nil, err
		}
		m.shards = append(m.shards, shard)
	}
	return m, nil
}

// copies returns the directory of the member's copies of journals.
func (m *member) copies() string { return m.home + "/journals" }

// shardDir returns the directory of a member's copy of a shard.
func (w *world) shardDir(name string, number int) string {
	return fmt.Sprintf("%s/%s/shard-%d", w.dir, name, number)
}

// close releases what the member has opened.
func (m *member) close(w *world) {
	for _, shard := range m.shards {
		if err := shard.Close(); err != nil {
			w.log.Info("closing a shard failed", slog.Any("error", err))
		}
	}
	if m.groups != nil {
		if err := m.groups.Close(); err != nil {
			w.log.Info("closing the groups failed", slog.Any("error", err))
		}
	}
	if m.all != nil {
		m.all.Close()
	}
	if m.lease != nil {
		m.lease.Close()
	}
	if m.conn != nil {
		m.conn.Close()
	}
	m.cancel()
	if m.client != nil {
		_ = m.client.Close() // it has no connection of its own
	}
}

// stop stops the member in order.
func (m *member) stop(w *world) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, shard := range m.shards {
		if err := shard.HandOver(ctx); err != nil {
			w.log.Info("handing over failed", slog.Any("error", err))
		}
	}
	m.crashed.Store(true) // its clients get no more responses
	m.close(w)
}

// crash ends the member like a power cut, and returns what its disk still has. What runs on in this
// process reaches nobody.
func (m *member) crash(w *world) *vfs.MemFS {
	m.crashed.Store(true)
	m.nats.Cut()
	m.etcd.Cut()
	left := m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: w.random.IntN(101), RNG: w.random})
	w.moveHome(m)
	w.ending.Go(func() { m.close(w) })
	return left
}

// newFS returns a file system that forgets what was not synced, with an empty directory for a member.
func (w *world) newFS(name string) *vfs.MemFS {
	fs := vfs.NewCrashableMem()
	home := w.dir + "/" + name
	err := errors.Join(fs.MkdirAll(home, 0o700), os.MkdirAll(home, 0o700))
	for dir := home; err == nil; dir = fs.PathDir(dir) { // the directory itself exists before the run
		var opened vfs.File
		if opened, err = fs.OpenDir(dir); err == nil {
			err = errors.Join(opened.Sync(), opened.Close())
		}
		if dir == fs.PathDir(dir) {
			break
		}
	}
	if err != nil {
		panic(err)
	}
	return fs
}
