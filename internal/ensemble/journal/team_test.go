package journal_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/journal"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
)

// team is the members of an ensemble that keep copies of their journals, with a real etcd.
type team struct {
	t    testing.TB
	nats *natstest.Cluster
	etcd *etcd.Member
	// client is the test's own connection to etcd.
	client *clientv3.Client
	dir    string
	names  []string
	log    *slog.Logger
	// name is the journal that the test uses.
	name string

	mu       sync.Mutex
	members  map[string]*teamMember // that run
	suspects map[string]string      // servers that members suspect, with the reason
}

type teamMember struct {
	js       *journal.Journals
	j        engine.Journal
	register *integrity.Register
	conn     *nats.Conn
	client   *clientv3.Client
	session  *concurrency.Session
	server   *httptest.Server
}

const teamWait = time.Minute

func newTeam(t testing.TB) *team {
	t.Helper()
	store, err := etcd.Start(context.Background(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	g := &team{
		t: t, etcd: store, nats: natstest.New(t, 3, natstest.Unsafe, natstest.Unverified), dir: t.TempDir(),
		names: []string{"a", "b", "c"}, name: "j",
		log: slog.New(slog.NewTextHandler(testLog{t}, nil)), members: map[string]*teamMember{},
		suspects: map[string]string{},
	}
	g.client = g.newClient()
	t.Cleanup(func() {
		for _, name := range g.names {
			g.stop(name)
		}
		_ = g.client.Close()
	})
	return g
}

func (g *team) newClient() *clientv3.Client {
	g.t.Helper()
	client, err := g.etcd.Endpoints().Client(zap.NewNop())
	if err != nil {
		g.t.Fatal(err)
	}
	return client
}

// Call implements journal.Peers.
func (g *team) Call(name string) (*http.Client, string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.members[name]; m != nil {
		return m.server.Client(), m.server.URL, nil
	}
	return nil, "", fmt.Errorf("member %q is not live", name)
}

func (g *team) member(name string) *teamMember {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members[name]
}

func (g *team) stream() string { return "J_x_" + g.name }

func (g *team) copyFile(name string) string {
	return filepath.Join(g.dir, name, "copies", g.name+".copy")
}

// start starts members that do not run.
func (g *team) start(names ...string) {
	g.t.Helper()
	for _, name := range names {
		if g.member(name) == nil {
			g.run(name)
		}
	}
}

// open opens the journal on all members at once, and repeats that like a server does.
func (g *team) open(names ...string) {
	g.t.Helper()
	var wg sync.WaitGroup
	problems := make([]string, len(names))
	for i, name := range names {
		wg.Go(func() {
			problems[i] = g.attempt(func() string {
				if err := g.tryOpen(name); err != nil {
					return fmt.Sprintf("opening the journal of %s: got error %v, want none", name, err)
				}
				return ""
			})
		})
	}
	wg.Wait()
	if text := strings.Join(problems, ""); text != "" {
		g.t.Fatal(text)
	}
}

func (g *team) tryOpen(name string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), teamWait)
	defer cancel()
	m := g.member(name)
	m.j, err = m.js.Journal(ctx, g.name)
	return err
}

// run starts a member without opening its journal.
func (g *team) run(name string) {
	g.t.Helper()
	dir := filepath.Join(g.dir, name)
	m := &teamMember{conn: g.nats.Connect(strings.Index("abc", name)), client: g.newClient()}
	var err error
	if m.register, err = integrity.Open(filepath.Join(dir, "integrity"), integrity.Options{}); err != nil {
		g.t.Fatal(err)
	}
	if m.session, err = concurrency.NewSession(m.client, concurrency.WithTTL(5)); err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), teamWait)
	defer cancel()
	m.js, err = journal.Open(ctx, m.conn, journal.Options{
		Prefix: "x", Replicas: 3, Timeout: 30 * time.Second, Integrity: m.register, Etcd: m.client, Keys: "/t/x",
		Dir: filepath.Join(dir, "copies"), Member: name, All: g.names, Peers: g,
		Session: func() *concurrency.Session { return m.session }, Logger: g.log, Suspect: g.suspect,
	})
	if err != nil {
		g.t.Fatalf("opening the journals of %s: got error %v, want none", name, err)
	}
	m.server = httptest.NewServer(journal.Handler(
		func(string) *journal.Journals { return m.js },
		func(string) string { return filepath.Join(dir, "copies") }))
	g.mu.Lock()
	g.members[name] = m
	g.mu.Unlock()
}

// suspect records that a member suspects a server.
func (g *team) suspect(server, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.suspects[server] = reason
}

type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// stop stops a member, if it runs.
func (g *team) stop(names ...string) {
	for _, name := range names {
		g.mu.Lock()
		m := g.members[name]
		delete(g.members, name)
		g.mu.Unlock()
		if m == nil {
			continue
		}
		m.js.Close()
		m.server.Close()
		_ = m.session.Close()
		_ = m.client.Close()
		m.conn.Close()
	}
}

// until repeats a check until it returns "".
func (g *team) until(check func() string) {
	g.t.Helper()
	if problem := g.attempt(check); problem != "" {
		g.t.Fatal(problem)
	}
}

// attempt repeats a check until it returns "" or the time is over, and returns the last result.
func (g *team) attempt(check func() string) string {
	ctx, cancel := context.WithTimeout(context.Background(), teamWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got := check()
		if got == "" {
			return ""
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return got
		}
	}
}

// awaitCopies waits until the members have reported copies up to a position.
func (g *team) awaitCopies(position uint64, names ...string) {
	g.t.Helper()
	for _, name := range names {
		g.until(func() string {
			found, err := g.client.Get(context.Background(), "/t/x/"+g.name+"/members/"+name)
			if err != nil {
				return err.Error()
			}
			var p journal.Position
			if len(found.Kvs) > 0 {
				if err := json.Unmarshal(found.Kvs[0].Value, &p); err != nil {
					return err.Error()
				}
			}
			if p.Position != position {
				return fmt.Sprintf("copy of %s: got position %d, want %d", name, p.Position, position)
			}
			return ""
		})
	}
}

// append appends n records through the members in turn and returns the last position.
func (g *team) append(after uint64, n int, names ...string) uint64 {
	g.t.Helper()
	for i := range n {
		j := g.member(names[i%len(names)]).j
		ctx, cancel := context.WithTimeout(context.Background(), teamWait)
		last, err := j.Append(ctx, after, fmt.Appendf(nil, "record %d %s", after+1, strings.Repeat("x", 100)))
		cancel()
		if err != nil || last != after+1 {
			g.t.Fatalf("append after %d: got position %d, error %v; want %d", after, last, err, after+1)
		}
		after = last
	}
	return after
}

// content returns a sum of the journal's state as a member reads it, and the last position. The snapshot
// of the tests is the text of all records before it, so it does not matter where the snapshot is.
func (g *team) content(name string) (text string, last uint64) {
	g.t.Helper()
	g.until(func() string {
		var err error
		if text, last, err = g.read(name); err != nil {
			return fmt.Sprintf("member %s: got error %v, want the journal", name, err)
		}
		return ""
	})
	return text, last
}

func (g *team) read(name string) (string, uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), teamWait)
	defer cancel()
	sum := sha256.New()
	position, r, err := g.member(name).j.LoadSnapshot(ctx)
	if err != nil {
		return "", 0, err
	}
	if r != nil {
		_, err := io.Copy(sum, r)
		if err := errors.Join(err, r.Close()); err != nil {
			return "", 0, err
		}
	}
	last, err := g.member(name).j.Replay(ctx, position, func(position uint64, record []byte) error {
		_, err := fmt.Fprintf(sum, "%d %s\n", position, record)
		return err
	})
	return fmt.Sprintf("%x", sum.Sum(nil)), last, err
}

// snapshot saves a snapshot of the records up to a position.
func (g *team) snapshot(name string, position uint64) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), teamWait)
	defer cancel()
	j := g.member(name).j
	var text strings.Builder
	_, err := j.Replay(ctx, 0, func(at uint64, record []byte) error {
		if at <= position {
			fmt.Fprintf(&text, "%d %s\n", at, record)
		}
		return nil
	})
	if err != nil {
		g.t.Fatal(err)
	}
	err = j.SaveSnapshot(ctx, position, func(w io.Writer) error {
		_, err := io.WriteString(w, text.String())
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
}

// check fails unless all members read the same content up to a position, and one stream is left.
func (g *team) check(want string, last uint64) {
	g.t.Helper()
	for _, name := range g.names {
		if got, at := g.content(name); got != want || at != last {
			g.t.Errorf("member %s: got content %s up to %d, want %s up to %d", name, got, at, want, last)
		}
	}
	js, err := natsjs.New(g.nats.Connect(0))
	if err != nil {
		g.t.Fatal(err)
	}
	g.until(func() string {
		var streams []string
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for name := range js.StreamNames(ctx).Name() {
			if name == g.stream() || strings.HasPrefix(name, g.stream()+"_") {
				streams = append(streams, name)
			}
		}
		if len(streams) != 1 {
			return fmt.Sprintf("got streams %v, want one", streams)
		}
		return ""
	})
}
