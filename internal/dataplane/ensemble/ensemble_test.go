package ensemble_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"freshet/internal/controlplane/etcd"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/ensemble"
	"freshet/internal/dataplane/provision"
	membersof "freshet/internal/ensemble"
	"freshet/internal/ensemble/membership"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/ensemble/remote"
	"freshet/test/poll"
)

// testEnsemble is an ensemble in one process, with a real etcd and a real log.
type testEnsemble struct {
	t     *testing.T
	names []string
	etcd  *etcd.Member
	nats  *natstest.Cluster
	dir   string

	mu      sync.Mutex
	members map[string]*member
}

type member struct {
	*ensemble.Plane
	client  *clientv3.Client
	session *concurrency.Session
	server  *httptest.Server
	cancel  context.CancelFunc
	ended   chan struct{}
}

func newTestEnsemble(t *testing.T, names ...string) *testEnsemble {
	t.Helper()
	store, err := etcd.Start(context.Background(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close etcd: got error %v, want none", err)
		}
	})
	w := &testEnsemble{
		t: t, names: names, etcd: store, nats: natstest.New(t, len(names), natstest.Unsafe), dir: t.TempDir(),
		members: map[string]*member{},
	}
	for _, name := range names {
		w.start(name)
	}
	t.Cleanup(func() {
		for _, name := range names {
			w.stop(name)
		}
	})
	return w
}

// testMembership is a member's view of an ensemble in which every member always has its lease.
type testMembership struct {
	*testEnsemble
	session *concurrency.Session
}

func (m testMembership) Session() *concurrency.Session { return m.session }
func (testMembership) Alive() bool                     { return true }

func (testMembership) SuspectLog(string, string) {}

func (testMembership) LogSynced() (external, synced, known bool, reason, message string) {
	return false, true, true, "", ""
}

// Observation implements ensemble.Membership.
func (testMembership) Observation() *membersof.Observation { return nil }

// Live implements ensemble.Membership.
func (w *testEnsemble) Live() (records []membership.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.members {
		records = append(records, membership.Record{Name: name})
	}
	return records
}

// Call implements ensemble.Membership.
func (w *testEnsemble) Call(name string) (via *http.Client, url string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.members[name]; m != nil {
		return m.server.Client(), m.server.URL, nil
	}
	return nil, "", http.ErrServerClosed
}

func (w *testEnsemble) folder(name, uid string) string { return filepath.Join(w.dir, name, uid) }

// start starts a member, and returns when it has opened the clusters that should run.
func (w *testEnsemble) start(name string) {
	w.t.Helper()
	client, err := w.etcd.Endpoints().Client(zap.NewNop())
	if err != nil {
		w.t.Fatal(err)
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(5))
	if err != nil {
		w.t.Fatal(err)
	}
	index := 0
	for i, each := range w.names {
		if each == name {
			index = i
		}
	}
	log := slog.New(slog.DiscardHandler)
	shared, err := ensemble.New(ensemble.Options{
		Self: name, Members: w.names, Membership: testMembership{w, session}, Etcd: client, Prefix: "/freshet",
		Log: w.nats.Connect(index), Logger: log, Clusters: filepath.Join(w.dir, name),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	local, err := dataplane.OpenMember(dataplane.Options{
		Dir: filepath.Join(w.dir, name), Domain: "freshet.localhost", Logger: log,
	}, shared)
	if err != nil {
		w.t.Fatal(err)
	}
	m := &member{Plane: ensemble.NewPlane(local, shared), client: client, session: session, ended: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle(remote.Path, remote.NewServer(local, log))
	mux.Handle(ensemble.CheckpointsPath+"/", shared.CheckpointHandler())
	mux.Handle(ensemble.JournalsPath+"/", shared.JournalHandler())
	mux.Handle(ensemble.ReleasePath, m.ReleaseHandler())
	m.server = httptest.NewUnstartedServer(mux)
	m.server.EnableHTTP2 = true
	m.server.StartTLS()
	w.mu.Lock()
	w.members[name] = m
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	opened := make(chan struct{})
	go func() {
		defer close(m.ended)
		m.Follow(ctx, opened)
	}()
	<-opened
}

// stop stops a member if it runs.
func (w *testEnsemble) stop(name string) {
	w.t.Helper()
	w.mu.Lock()
	m := w.members[name]
	delete(w.members, name)
	w.mu.Unlock()
	if m == nil {
		return
	}
	m.HandOver(context.Background())
	m.cancel()
	<-m.ended
	if err := m.Close(); err != nil {
		w.t.Errorf("close %s: got error %v, want none", name, err)
	}
	m.server.Close()
	_ = m.session.Close()
	_ = m.client.Close()
}

func (w *testEnsemble) eventually(what string, is func() bool) {
	w.t.Helper()
	poll.Until(w.t, 30*time.Second, what, is)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func spec(uid string) provision.Spec {
	return provision.Spec{
		UID: uid, Organization: "acme", Instance: "i", Name: uid, Host: uid + ".acme.freshet.localhost",
		Engine: "pebble",
		Custom: map[string]string{"shards": "2"}, Copies: 3,
	}
}

func ignore(provision.Part) {}

// TestDeletedWhileAMemberIsDown deletes a cluster while a member is down: when the member is
// back, it removes the directory of that cluster and no other.
func TestDeletedWhileAMemberIsDown(t *testing.T) {
	t.Parallel()
	w := newTestEnsemble(t, "a", "b", "c")
	a := w.members["a"]
	for _, uid := range []string{"kept", "deleted"} {
		if err := a.Provision(t.Context(), spec(uid), ignore); err != nil {
			t.Fatal(err)
		}
		w.eventually("the cluster on c", func() bool { return exists(w.folder("c", uid)) })
	}
	if got := len(a.Shards("kept")); got != 2 {
		t.Fatalf("got %d shards, want 2", got)
	}
	w.eventually("three copies", func() bool { return len(a.Shards("kept")[0].Copies) == 3 })
	w.stop("c")
	if err := a.Destroy(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{"a": false, "b": false, "c": true} {
		if got := exists(w.folder(name, "deleted")); got != there {
			t.Errorf("member %s: directory of the deleted cluster exists: got %t, want %t", name, got, there)
		}
	}
	// A directory without any information about its cluster, such as from a restored backup.
	if err := os.Mkdir(w.folder("c", "unknown"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.start("c")
	for uid, there := range map[string]bool{"deleted": false, "kept": true, "unknown": true} {
		if got := exists(w.folder("c", uid)); got != there {
			t.Errorf("directory of %s after the restart: exists: got %t, want %t", uid, got, there)
		}
	}
	left, err := a.client.Get(t.Context(), "/freshet/gone/", clientv3.WithPrefix())
	if err != nil || left.Count != 0 {
		t.Errorf("got %d keys left and error %v, want none", left.Count, err)
	}
}
