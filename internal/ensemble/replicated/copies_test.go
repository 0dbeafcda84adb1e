package replicated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
	"freshet/test/poll"
	"freshet/test/tally"
)

// testTimeout is how long a test waits for what takes seconds on a machine that is not busy.
const testTimeout = 4 * time.Minute

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	poll.Until(t, testTimeout, what, holds)
}

func quickFlush(o *Options) { o.FlushInterval = 50 * time.Millisecond }

// fill creates topic 1 and appends messages of 1 KiB.
func fill(t testing.TB, e engine.Engine, n int) (texts []string) {
	t.Helper()
	if err := e.CreateTopic(context.Background(), 1, retainAll); err != nil && !errors.Is(err, engine.ErrTopicExists) {
		t.Fatal(err)
	}
	for i := range n {
		text := fmt.Sprintf("%d/%s", i, strings.Repeat("x", 1000))
		appendText(t, e, text)
		texts = append(texts, text)
	}
	return texts
}

// first returns the first sequence of the log.
func (m *member) first(t testing.TB) uint64 {
	t.Helper()
	m.mu.Lock()
	st := m.stream
	m.mu.Unlock()
	if st == nil {
		return 0
	}
	state, err := st.state(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return state.FirstSeq
}

// lossy aborts transfers after half of their bytes.
type lossy struct {
	http.RoundTripper
	broken atomic.Int64
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil && strings.Contains(r.URL.Path, "/checkpoint/") && resp.ContentLength > 2000 {
		resp.Body = &shortBody{resp.Body, resp.ContentLength / 2, l}
	}
	return resp, err
}

type shortBody struct {
	io.ReadCloser
	left int64
	l    *lossy
}

func (b *shortBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.l.broken.Add(1)
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// cancelAfter cancels a context when so many bytes of files have been read. It serves one request
// at a time.
type cancelAfter struct {
	http.RoundTripper
	left   int64
	cancel context.CancelFunc
}

func (c *cancelAfter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil && strings.Contains(r.URL.Path, "/checkpoint/") {
		resp.Body = cancelingBody{resp.Body, c}
	}
	return resp, err
}

type cancelingBody struct {
	io.ReadCloser
	c *cancelAfter
}

func (b cancelingBody) Read(p []byte) (int, error) {
	if b.c.left <= 0 {
		b.c.cancel()
		return 0, context.Canceled
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.c.left)])
	b.c.left -= int64(n)
	return n, err
}

// onePeer is the connection to the only other member.
type onePeer struct {
	via *http.Client
	url string
}

func (p onePeer) Call(string) (via *http.Client, url string, err error) { return p.via, p.url, nil }

// peersByName are connections to members whose handlers are on one server, under their names.
type peersByName struct{ url string }

func (p peersByName) Call(member string) (via *http.Client, url string, err error) {
	return http.DefaultClient, p.url + "/" + member, nil
}

// servesCheckpoints makes the member's checkpoints available to another member over the transport wire.
func (m *member) servesCheckpoints(t testing.TB, wire http.RoundTripper) func(*Options) {
	t.Helper()
	server := httptest.NewServer(Handler(func(cluster string, number int) *Shard {
		if cluster == m.team.cluster && number == m.team.number {
			return m.Shard
		}
		return nil
	}))
	t.Cleanup(server.Close)
	return func(o *Options) {
		o.Peers = onePeer{&http.Client{Transport: wire}, server.URL}
	}
}

// TestFaultEmptyMember starts an empty member after the log has been purged: it fetches a
// checkpoint over a connection that breaks repeatedly, and becomes the owner.
func TestFaultEmptyMember(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 1, natstest.Unsafe).team()
	a := tm.start(t, "a", 0, nil, quickFlush)
	e := a.awaitOwner(t)
	texts := fill(t, e, 300)
	eventually(t, "the log purged", func() bool { return a.first(t) > 100 })
	wire := &lossy{RoundTripper: http.DefaultTransport}
	b := tm.start(t, "b", 0, nil, quickFlush, a.servesCheckpoints(t, wire))
	b.awaitApplied(t, a.Status().Applied)
	appendText(t, e, "last")
	a.stop(t)
	wantTexts(t, b.awaitOwner(t), append(texts, "last")...)
	if got := wire.broken.Load(); got == 0 {
		t.Errorf("got %d broken transfers, want some", got)
	}
	b.stop(t)
	for _, left := range []string{a.checkpointDir(), b.fetchDir(), b.o.Dir + ".old"} {
		if entries, err := os.ReadDir(left); len(entries) > 0 {
			t.Errorf("got %d files in %s (%v), want none left behind", len(entries), left, err)
		}
	}
	tally.Fault{
		Name: "transfer of a checkpoint broken off", Injected: int(wire.broken.Load()),
		Checked: len(texts) + 1,
	}.Record(t)
}

// TestFetchResumes cancels a fetch: the next fetch continues from there, and damaged files
// are fetched again.
func TestFetchResumes(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 1, natstest.Unsafe).team()
	a := tm.start(t, "a", 0, nil)
	fill(t, a.awaitOwner(t), 500)
	server := httptest.NewServer(Handler(func(string, int) *Shard { return a.Shard }))
	defer server.Close()
	base, dir := server.URL+Path+"/"+tm.cluster+"/0/checkpoint", t.TempDir()
	all, err := fetch(t.Context(), http.DefaultClient, base, false, pebble.Options{}.Disk(), t.TempDir(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	canceling := &http.Client{Transport: &cancelAfter{http.DefaultTransport, all / 2, cancel}}
	some, err := fetch(ctx, canceling, base, false, pebble.Options{}.Disk(), dir, 1<<30)
	if err == nil || some == 0 || some >= all {
		t.Fatalf("cancelled fetch: got %d of %d bytes and error %v, want a part and an error", some, all, err)
	}
	rest, err := fetch(t.Context(), http.DefaultClient, base, false, pebble.Options{}.Disk(), dir, 1<<30)
	if err != nil || rest+some > all+all/10 {
		t.Errorf("second fetch: got %d bytes after %d of %d, error %v; want the rest only", rest, some, all, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".sst") {
			if err := os.WriteFile(dir+"/"+e.Name(), []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := fetch(t.Context(), http.DefaultClient, base, false, pebble.Options{}.Disk(), dir, 1<<30); err != nil {
		t.Fatal(err)
	}
	store, err := pebble.OpenStore(dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := store.LogPosition()
	m, decodeErr := decodeLogPosition(stored)
	if err = errors.Join(err, decodeErr, store.Close()); err != nil || m.seq == 0 {
		t.Errorf("fetched store: got position %+v, error %v; want one", m, err)
	}
	if _, err := fetch(t.Context(), http.DefaultClient, server.URL+Path+"/"+tm.cluster+"/1x/checkpoint", false,
		pebble.Options{}.Disk(), dir,
		1); err == nil {
		t.Error("fetch of a missing shard: got no error, want one")
	}
	a.stop(t)
}

// TestLogLost: copies and logs that do not match are never opened, and the error names the
// reason.
func TestLogLost(t *testing.T) {
	t.Parallel()
	g := newTestEnsemble(t, 1, natstest.Unsafe)
	for name, harm := range map[string]func(t *testing.T, m *member, disk *vfs.MemFS){
		"the stream is gone": func(t *testing.T, m *member, _ *vfs.MemFS) {
			if err := m.js.DeleteStream(t.Context(), streamName(&m.o)); err != nil {
				t.Fatal(err)
			}
		},
		"the stream was recreated": func(t *testing.T, m *member, _ *vfs.MemFS) {
			if err := m.js.DeleteStream(t.Context(), streamName(&m.o)); err != nil {
				t.Fatal(err)
			}
			st := &stream{js: m.js, name: streamName(&m.o), subject: "S." + m.o.Cluster + ".0"}
			if _, err := st.create(t.Context(), &m.o); err != nil {
				t.Fatal(err)
			}
		},
		"the store is ahead": func(t *testing.T, m *member, disk *vfs.MemFS) {
			changePosition(t, m, disk, func(at *logPosition) { at.seq += 5 })
		},
		"the store has something else": func(t *testing.T, m *member, disk *vfs.MemFS) {
			changePosition(t, m, disk, func(at *logPosition) { at.sum++ })
		},
		"the store is of another log": func(t *testing.T, m *member, disk *vfs.MemFS) {
			changePosition(t, m, disk, func(at *logPosition) { at.log[0]++ })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tm := g.team()
			disk := vfs.NewCrashableMem()
			a := tm.start(t, "a", 0, disk)
			fill(t, a.awaitOwner(t), 3)
			if err := a.HandOver(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := a.Shard.Close(); err != nil {
				t.Fatal(err)
			}
			harm(t, a, disk)
			// A majority of the copies is absent, so the log is not rebuilt.
			b := tm.start(t, "a", 0, disk, func(o *Options) { o.All = []string{"a", "b"} })
			eventually(t, "an error", func() bool { return b.Status().Err != nil })
			if err := b.Status().Err; !errors.Is(err, engine.ErrLogLost) {
				t.Errorf("got error %v, want %v", err, engine.ErrLogLost)
			}
			if _, err := b.Engine(); err == nil {
				t.Error("got an engine, want none")
			}
			b.stop(t)
		})
	}
}

// A log that the servers do not know yet is not reported as lost.
func TestALogThatComesLate(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 1, natstest.Unsafe).team()
	a := tm.start(t, "a", 0, nil)
	a.awaitOwner(t)
	st, err := openStream(t.Context(), &a.o, a.keys.log)
	if err != nil {
		t.Fatal(err)
	}
	a.stop(t)
	other := tm.start(t, "other", 0, nil, func(o *Options) { o.Number = 1 })
	content := contentOf(t, other.js, st.name)
	if err := other.js.DeleteStream(t.Context(), st.name); err != nil {
		t.Fatal(err)
	}
	b := tm.start(t, "b", 0, nil)
	<-time.After(logLostTimeout / 10)
	if err := b.Status().Err; err != nil {
		t.Errorf("while the log is missing: got error %v, want none", err)
	}
	st.js = other.js
	if _, err := st.createFrom(t.Context(), &b.o, st.id, 1); err != nil {
		t.Fatal(err)
	}
	publishAll(t, other.js, content)
	b.awaitOwner(t)
	b.stop(t)
	other.stop(t)
}

// contentOf returns the messages of a stream.
func contentOf(t *testing.T, js jetstream.JetStream, name string) []*nats.Msg {
	t.Helper()
	st, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var all []*nats.Msg
	for seq := range st.CachedInfo().State.LastSeq {
		msg, err := st.GetMsg(t.Context(), seq+1)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &nats.Msg{Subject: msg.Subject, Header: msg.Header, Data: msg.Data})
	}
	return all
}

func publishAll(t *testing.T, js jetstream.JetStream, all []*nats.Msg) {
	t.Helper()
	for _, msg := range all {
		if _, err := js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
}

func changePosition(t *testing.T, m *member, disk *vfs.MemFS, change func(*logPosition)) {
	t.Helper()
	opts := pebble.Options{}
	if disk != nil {
		opts.FS = disk
	}
	store, err := pebble.OpenStore(m.o.Dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := store.LogPosition()
	if err != nil {
		t.Fatal(err)
	}
	at, err := decodeLogPosition(stored)
	if err != nil {
		t.Fatal(err)
	}
	change(&at)
	if err := errors.Join(store.Apply(nil, at.encode()), store.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestFullLog stops a member with a copy: the log is kept for it up to its size limit, where
// messages are rejected and acknowledgements are not, until the member counts as gone.
func TestFullLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	tm := newTestEnsemble(t, 1, natstest.Unsafe).team()
	limits := func(o *Options) {
		quickFlush(o)
		o.LogBytes, o.GoneAfter = 200<<10, 4*time.Second
	}
	a := tm.start(t, "a", 0, nil, limits)
	e := a.awaitOwner(t)
	fill(t, e, 1)
	// the log may already be purged
	b := tm.start(t, "b", 0, nil, limits, a.servesCheckpoints(t, http.DefaultTransport))
	b.awaitApplied(t, a.Status().Applied)
	if err := e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}); err != nil {
		t.Fatal(err)
	}
	b.stop(t)
	var err error
	for range 50 { // few and large, so that the limit is reached long before b counts as gone
		if _, err = e.Append(ctx, 1, 0, []engine.Message{{Payload: noise(20 << 10)}}); err != nil {
			break
		}
	}
	if !errors.Is(err, engine.ErrDiskFull) {
		t.Fatalf("append at the size limit of the log: got error %v, want %v", err, engine.ErrDiskFull)
	}
	if got := a.Status(); !got.Full || got.SlowestMember != "b" {
		t.Errorf("status: got %+v, want a log that is full because of b", got)
	}
	got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: 0})
	if err != nil || len(got) != 1 {
		t.Fatalf("receive: got %v, %v; want a message", got, err)
	}
	if err := e.Settle(ctx, 1, "s", []engine.Settlement{{ID: got[0].ID}}); err != nil {
		t.Errorf("acknowledge: got error %v, want none", err)
	}
	eventually(t, "messages accepted again", func() bool {
		_, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("m")}})
		return err == nil
	})
	if got := a.Status(); len(got.Copies) != 1 || got.Full {
		t.Errorf("status: got %+v, want one copy and a log that is not full", got)
	}
	a.stop(t)
}
