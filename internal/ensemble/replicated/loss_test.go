package replicated

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
)

// pair is two members with copies of a shard on disk; a has more than b.
type pair struct {
	*team
	mu  sync.Mutex
	all map[string]*member
	url string
}

func (p *pair) run(t *testing.T, name string) *member {
	t.Helper()
	m := p.start(t, name, 0, nil, func(o *Options) {
		o.All = []string{"a", "b"}
		o.Peers = peersByName{p.url}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[name] = m
	return m
}

// newPair fills a shard of which b has the first 20 messages and a all 30, and stops both.
func newPair(t *testing.T, g *testEnsemble) (p *pair, texts []string) {
	t.Helper()
	p = &pair{team: g.team(), all: map[string]*member{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		p.mu.Lock()
		m := p.all[name]
		p.mu.Unlock()
		http.StripPrefix("/"+name, Handler(func(string, int) *Shard { return m.Shard })).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	a := p.run(t, "a")
	texts = fill(t, a.awaitOwner(t), 20) // before b could become the owner
	b := p.run(t, "b")
	b.awaitApplied(t, a.Status().Applied)
	b.stop(t)
	for _, text := range []string{"x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10"} {
		appendText(t, a.awaitOwner(t), text)
		texts = append(texts, text)
	}
	a.stop(t)
	return p, texts
}

// truncate replaces the log with its first messages, like a server that restarts without
// unsynced data.
func (p *pair) truncate(t *testing.T, keep uint64) {
	t.Helper()
	conn := p.g.nats.Connect(0)
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Cluster: p.cluster, Number: p.number, JetStream: js, Replicas: 1}
	old, err := js.Stream(t.Context(), streamName(o))
	if err != nil {
		t.Fatal(err)
	}
	kept := contentOf(t, js, streamName(o))[:keep]
	config := old.CachedInfo().Config
	if err := js.DeleteStream(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	publishAll(t, js, kept)
}

// wantOneLog checks that the log which replaced the first one has a stream with another name and is the
// only one, and that Destroy removes it.
func (p *pair) wantOneLog(t *testing.T) {
	t.Helper()
	conn := p.g.nats.Connect(0)
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	client := p.g.etcd.Client()
	defer client.Close()
	o := Options{Cluster: p.cluster, Number: p.number, JetStream: js, Etcd: client, Prefix: "/shards"}
	identity, err := readIdentity(t.Context(), &o, o.keys().log)
	if err != nil {
		t.Fatal(err)
	}
	streams := func() (names []string) {
		list := js.StreamNames(t.Context())
		for name := range list.Name() {
			if strings.HasPrefix(name, streamName(&o)) {
				names = append(names, name)
			}
		}
		if err := list.Err(); err != nil {
			t.Fatal(err)
		}
		return names
	}
	if got, want := streams(), []string{streamName(&o) + "-" + identity[:8]}; !slices.Equal(got, want) {
		t.Errorf("got streams %q, want %q", got, want)
	}
	if err := Destroy(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := streams(); len(got) != 0 {
		t.Errorf("got streams %q after the shard was destroyed, want none", got)
	}
}

func lost(m *member) func() bool {
	return func() bool { return errors.Is(m.Status().Err, engine.ErrLogLost) }
}

// TestAcceptLoss continues shards whose copies and log do not match.
func TestAcceptLoss(t *testing.T) {
	t.Parallel()
	g := newTestEnsemble(t, 1, natstest.Unsafe)
	t.Run("copies are ahead of the log", func(t *testing.T) {
		t.Parallel()
		p, texts := newPair(t, g)
		p.truncate(t, 5)
		a := p.run(t, "a")
		eventually(t, "a lost, because one of two copies is no majority", lost(a))
		eventually(t, "the problem published", func() bool {
			return slices.IndexFunc(a.Status().Copies, func(c Copy) bool { return c.Member == "a" && c.Lost }) >= 0
		})
		l, err := a.Loss(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if l.From != "a" || l.LogLast != 5 || l.LogMessages != 0 || !slices.Equal(l.Absent, []string{"b"}) ||
			len(l.Copies) != 1 {
			t.Errorf("got %+v, want to continue from the copy of a, which has the most data", l)
		}
		if _, err := a.Accept(t.Context(), "a", l.Token+"0"); errs.KindOf(err) != errs.Conflict {
			t.Errorf("accepting an outdated review: got error %v, want a conflict", err)
		}
		if _, err := a.Accept(t.Context(), "a", l.Token); err != nil {
			t.Fatal(err)
		}
		wantTexts(t, a.awaitOwner(t), texts...)
		b := p.run(t, "b")
		appendText(t, a.awaitOwner(t), "after")
		eventually(t, "a copy on b",
			func() bool { return b.Status().Role == Standby && b.Status().Applied >= a.Status().Applied })
		a.stop(t)
		wantTexts(t, b.awaitOwner(t), append(texts, "after")...)
		b.stop(t)
		a = p.run(t, "a") // the accepted loss is carried out only once
		wantTexts(t, a.awaitOwner(t), append(texts, "after")...)
		if _, err := a.Loss(t.Context(), ""); errs.KindOf(err) != errs.Precondition {
			t.Errorf("loss of a healthy shard: got error %v, want a precondition", err)
		}
		a.stop(t)
		p.wantOneLog(t)
	})
	t.Run("the log is gone", func(t *testing.T) {
		t.Parallel()
		p, texts := newPair(t, g)
		conn := g.nats.Connect(0)
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		if err := js.DeleteStream(t.Context(), "S_"+p.cluster+"_0"); err != nil {
			t.Fatal(err)
		}
		b := p.run(t, "b") // a is absent: its additional messages are discarded, and it cannot bring them back
		eventually(t, "the copy lost", lost(b))
		if _, err := b.Loss(t.Context(), FromLog); errs.KindOf(err) != errs.Precondition {
			t.Errorf("continuing from a missing log: got error %v, want a precondition", err)
		}
		l, err := b.Loss(t.Context(), "")
		if err != nil || l.From != "b" || !slices.Equal(l.Absent, []string{"a"}) || l.LogExists {
			t.Fatalf("got %+v and error %v, want b as the source and a absent", l, err)
		}
		if _, err := b.Accept(t.Context(), "b", l.Token); err != nil {
			t.Fatal(err)
		}
		wantTexts(t, b.awaitOwner(t), texts[:20]...)
		a := p.run(t, "a")
		eventually(t, "a, which has more, still lost", lost(a))
		b.awaitOwner(t) // from now on only the copy of a would be discarded
		if l, err = b.Loss(t.Context(), ""); err != nil || l.From != FromLog ||
			!slices.Equal(l.Discard, []string{"a"}) {
			t.Fatalf("got %+v and error %v, want only the copy of a discarded", l, err)
		}
		if _, err := b.Accept(t.Context(), l.From, l.Token); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a copy on a",
			func() bool { return a.Status().Role == Standby && a.Status().Applied >= b.Status().Applied })
		b.stop(t)
		wantTexts(t, a.awaitOwner(t), texts[:20]...)
		a.stop(t)
	})
	t.Run("copies differ from the log", func(t *testing.T) {
		t.Parallel()
		p, texts := newPair(t, g)
		for _, name := range []string{"a", "b"} {
			changePosition(t, p.all[name], nil, func(at *logPosition) { at.sum++ })
		}
		a, b := p.run(t, "a"), p.run(t, "b")
		eventually(t, "both lost", func() bool { return lost(a)() && lost(b)() })
		l, err := a.Loss(t.Context(), FromLog)
		if err != nil || !slices.Equal(l.Discard, []string{"a", "b"}) {
			t.Fatalf("got %+v and error %v, want both copies discarded", l, err)
		}
		if _, err := a.Accept(t.Context(), FromLog, l.Token); err != nil {
			t.Fatal(err)
		}
		eventually(t, "an owner", func() bool { return a.Owner().Member != "" })
		eventually(t, "copies", func() bool {
			return a.Status().Role != Starting && b.Status().Role != Starting &&
				b.Status().Applied == a.Status().Applied && b.Status().Applied > 0
		})
		a.stop(t)
		wantTexts(t, b.awaitOwner(t), texts...)
		b.stop(t)
	})
}
