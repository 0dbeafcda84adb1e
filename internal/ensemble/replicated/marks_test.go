package replicated

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
)

// trio is three members, each with a server of the log, and connections between them.
type trio struct {
	*team
	url    string
	onDisk bool // members have the real file system, so they are stopped and not killed

	attempts int // number of messages that were sent

	mu    sync.Mutex
	all   map[string]*member
	disks map[string]*vfs.MemFS
}

var trioNames = []string{"a", "b", "c"}

func newTrio(t *testing.T) *trio {
	t.Helper()
	g := newTestEnsemble(t, 3, natstest.Unverified)
	g.lease = killedSeconds
	p := &trio{team: g.team(), all: map[string]*member{}, disks: map[string]*vfs.MemFS{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		http.StripPrefix("/"+name, Handler(func(string, int) *Shard {
			p.mu.Lock()
			defer p.mu.Unlock()
			if m := p.all[name]; m != nil {
				return m.Shard
			}
			return nil
		})).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// run starts a member on the disk that it left.
func (p *trio) run(t *testing.T, name string) *member {
	t.Helper()
	if p.disks[name] == nil && !p.onDisk {
		p.disks[name] = vfs.NewCrashableMem()
	}
	m := p.start(t, name, slices.Index(trioNames, name), p.disks[name], func(o *Options) {
		o.All = trioNames
		o.Peers = peersByName{p.url}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[name] = m
	return m
}

// end kills or stops a member.
func (p *trio) end(t *testing.T, name string, kill bool) {
	t.Helper()
	p.mu.Lock()
	m := p.all[name]
	p.all[name] = nil
	p.mu.Unlock()
	if kill && !p.onDisk {
		p.disks[name] = m.kill(t)
	} else {
		m.stop(t)
	}
}

// saveLog keeps a copy of the files of a member's server, and cutLog replaces them with it while the
// server is stopped. So its log loses its end, as if a disk had not kept what it had reported to
// be synced.
func (p *trio) saveLog(t *testing.T, name string) {
	t.Helper()
	p.server(name, false)
	dir := p.g.nats.Dir(slices.Index(trioNames, name))
	if err := os.CopyFS(dir+".saved", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	p.server(name, true)
	p.g.nats.Ready()
}

func (p *trio) cutLog(t *testing.T, name string) {
	t.Helper()
	dir := p.g.nats.Dir(slices.Index(trioNames, name))
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(dir+".saved"))); err != nil {
		t.Fatal(err)
	}
}

func (p *trio) server(name string, run bool) {
	if i := slices.Index(trioNames, name); run {
		p.g.nats.Start(i)
	} else {
		p.g.nats.Stop(i)
	}
}

// threeFaults leaves b and c, with a log that lacks messages which a and c have acknowledged. When
// aLives, the process of a goes on without its server, whose log is cut too.
func threeFaults(t *testing.T, p *trio, aLives bool) (kept, texts []string) {
	t.Helper()
	a := p.run(t, "a")
	kept = fill(t, a.awaitOwner(t), 5)
	for _, name := range []string{"b", "c"} {
		p.run(t, name).awaitApplied(t, a.Status().Applied)
	}
	p.saveLog(t, "c")
	p.saveLog(t, "a")
	p.end(t, "b", true)
	p.server("b", false)
	texts = append(slices.Clone(kept), p.serves(t, kept))
	for range 30 {
		texts = append(texts, p.accepts(t))
	}
	p.all["c"].awaitApplied(t, a.Status().Applied)
	p.end(t, "c", true)
	p.server("c", false)
	p.cutLog(t, "c")
	if !aLives {
		p.end(t, "a", true)
	}
	p.server("a", false)
	p.server("b", true)
	p.server("c", true)
	p.g.nats.Ready()
	return kept, texts
}

// TestALogThatLostItsEnd: one member is away, one is killed and loses its log, and the third is
// killed. The first two have a majority, and the log that they have lacks acknowledged messages.
// Nobody serves it.
func TestALogThatLostItsEnd(t *testing.T) {
	t.Parallel()
	p := newTrio(t)
	kept, texts := threeFaults(t, p, false)
	b, c := p.run(t, "b"), p.run(t, "c")
	eventually(t, "LogLost on both members, or an engine", func() bool {
		if e := p.engine(); e != nil {
			wantTexts(t, e, texts...) // fails
		}
		return lost(b)() && lost(c)()
	})
	for _, m := range []*member{b, c} {
		if text := m.Status().Err.Error(); !strings.Contains(text, "has acknowledged the log up to message") ||
			!strings.Contains(text, "messages are missing") {
			t.Errorf("member %s: got %q, want the position and what is missing", m.name, text)
		}
	}
	l, err := b.Loss(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Accept(t.Context(), "b", l.Token); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, p.serves(t, kept))
	// Old marks do not block a shard whose loss was accepted: not after restarts, nor when the
	// member returns that had acknowledged more.
	p.end(t, "b", true)
	p.end(t, "c", true)
	p.server("a", true)
	p.g.nats.Ready()
	for _, name := range trioNames {
		p.run(t, name)
	}
	p.serves(t, kept)
	for _, name := range trioNames {
		p.end(t, name, false)
	}
}

// TestRebuild: the log of all servers has lost its end, and the copy of a running member has it.
func TestRebuild(t *testing.T) {
	t.Parallel()
	p := newTrio(t)
	p.onDisk = true // others fetch checkpoints
	_, texts := threeFaults(t, p, true)
	p.cutLog(t, "a")
	p.server("a", true)
	p.g.nats.Ready()
	p.run(t, "b")
	p.run(t, "c")
	a := p.all["a"]
	texts = append(texts, p.serves(t, texts))
	for _, name := range trioNames {
		eventually(t, "a copy on "+name, func() bool {
			is := p.all[name].Status()
			return is.Role != Starting && is.Applied >= a.Status().Applied
		})
	}
	p.end(t, "a", true) // what only a had is on the others
	p.serves(t, texts)
	p.end(t, "b", false)
	p.end(t, "c", false)
}

// serves waits until a member accepts a message, which it returns, and checks that the shard has
// the others before it.
func (p *trio) serves(t *testing.T, texts []string) (accepted string) {
	t.Helper()
	accepted = p.accepts(t)
	want := append(slices.Clone(texts), accepted)
	eventually(t, "an engine", func() bool {
		e := p.engine()
		if e == nil {
			return false
		}
		records, err := e.Read(t.Context(), 1, engine.ReadRequest{Max: 10000})
		if err != nil {
			return false
		}
		got := []string{}
		for _, r := range records {
			// An attempt whose outcome was unknown may be there.
			if text := string(r.Payload); slices.Contains(want, text) || !strings.HasPrefix(text, attempt) {
				got = append(got, text)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got messages %v, want %v", got, want)
		}
		return true
	})
	return accepted
}

const attempt = "attempt "

// accepts appends messages until one is acknowledged, which it returns. A member whose log is lost
// may still have an engine, which does not accept messages.
func (p *trio) accepts(t *testing.T) (accepted string) {
	t.Helper()
	eventually(t, "an engine that accepts messages", func() bool {
		e := p.engine()
		if e == nil {
			return false
		}
		p.attempts++
		text := fmt.Sprint(attempt, p.attempts)
		if _, err := e.Append(t.Context(), 1, 0, []engine.Message{{Payload: []byte(text)}}); err != nil {
			return false
		}
		accepted = text
		return true
	})
	return accepted
}

// engine returns the engine of the owner, nil if there is none.
func (p *trio) engine() engine.Engine {
	for _, name := range trioNames {
		if m := p.all[name]; m != nil {
			if e, err := m.Engine(); err == nil {
				return e
			}
		}
	}
	return nil
}

// TestPublishMarks: a starting member publishes what it has acknowledged, before it opens its
// shards, and never anything older than what is published.
func TestPublishMarks(t *testing.T) {
	t.Parallel()
	g := newTestEnsemble(t, 1, natstest.Unsafe)
	tm := g.team()
	a := tm.start(t, "a", 0, nil)
	fill(t, a.awaitOwner(t), 3)
	a.stop(t)
	client := g.etcd.Client()
	defer client.Close()
	published := func() logPosition {
		t.Helper()
		found, err := client.Get(t.Context(), a.keys.marks+"a")
		if err != nil || len(found.Kvs) != 1 {
			t.Fatalf("got %v and error %v, want a mark", found, err)
		}
		at, _, err := parseMark(found.Kvs[0].Value)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	last := published()
	if last != a.mark.position() || last.seq < 3 {
		t.Fatalf("after a shutdown: got mark %+v, want %+v", last, a.mark.position())
	}
	files := FindMarks(tm.cluster, 1, func(int) string { return a.o.Dir })
	for _, tc := range []struct{ published, want uint64 }{{last.seq - 2, last.seq}, {last.seq + 2, last.seq + 2}} {
		at := last
		at.seq = tc.published
		if _, err := client.Put(t.Context(), a.keys.marks+"a", markValue(at)); err != nil {
			t.Fatal(err)
		}
		if err := PublishMarks(t.Context(), client, "/shards", "a", files); err != nil {
			t.Fatal(err)
		}
		if got := published().seq; got != tc.want {
			t.Errorf("published %d, acknowledged %d: got %d, want %d", tc.published, last.seq, got, tc.want)
		}
	}
	// The last one is like that of a disk that is lost: it stays when the member opens the shard, and
	// keeps the member from serving without it.
	b := tm.start(t, "a", 0, nil, func(o *Options) { o.All = []string{"a", "b"} })
	eventually(t, "LogLost", lost(b))
	if got := published().seq; got != last.seq+2 {
		t.Errorf("after opening: got mark %d, want %d", got, last.seq+2)
	}
	l, err := b.Loss(t.Context(), FromLog)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Accept(t.Context(), FromLog, l.Token); err != nil {
		t.Fatal(err)
	}
	appendText(t, b.awaitOwner(t), "after") // the log is the same, and its old marks do not count
	if at := b.mark.position(); at.epoch <= last.epoch+voidEpochs || at.log != last.log {
		t.Errorf("got mark %+v, want a later epoch of the same log than that of %+v", at, last)
	}
	b.stop(t)
	b = tm.start(t, "a", 0, nil)
	appendText(t, b.awaitOwner(t), "again")
	b.stop(t)
}

// TestStandbyBesideAWritingOwner: a copy that did not match its log becomes a standby again while the owner
// appends and publishes its mark all the time.
func TestStandbyBesideAWritingOwner(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 1, natstest.Unsafe).team()
	client := tm.g.etcd.Client()
	defer client.Close()
	a := tm.start(t, "a", 0, nil)
	e := a.awaitOwner(t)
	fill(t, e, 3)
	right := a.stream.id.String()
	if _, err := client.Put(t.Context(), a.keys.log, logID{1}.String()); err != nil {
		t.Fatal(err)
	}
	b := tm.start(t, "b", 0, nil)
	eventually(t, "LogLost", lost(b))
	load, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	var appended atomic.Int64
	done.Go(func() {
		for load.Err() == nil {
			if _, err := e.Append(t.Context(), 1, 0, []engine.Message{{}}); err != nil {
				t.Errorf("append: got error %v, want none", err)
				return
			}
			if _, err := client.Put(t.Context(), a.keys.marks+"a", markValue(a.mark.position())); err != nil {
				t.Errorf("publish the owner's mark: got error %v, want none", err)
				return
			}
			appended.Add(1)
		}
	})
	if _, err := client.Put(t.Context(), a.keys.log, right); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a standby", func() bool { return b.Status().Role == Standby })
	before := appended.Load()
	eventually(t, "more appends", func() bool { return appended.Load() > before })
	stop()
	done.Wait()
	b.stop(t)
	a.stop(t)
}
