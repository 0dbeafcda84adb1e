package replicated

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
	"freshet/internal/storage/pebble"
)

// TestSeed starts a shard with content copied from another server. Members without the
// content never become owners and do not fetch from each other. They fetch everything from
// the seeded member, and continue without it.
func TestSeed(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		tm := newTestEnsemble(t, servers, natstest.Unsafe).team()
		seed := NewSeed()
		at, err := seed.StorePosition()
		if err != nil {
			t.Fatal(err)
		}
		texts := seedStore(t, tm.dir+"/a", at)
		keys, err := SeedKeys("/shards", tm.cluster, tm.number, seed, []string{"a", "b", "c"}, 0, "a")
		if err != nil {
			t.Fatal(err)
		}
		client := tm.g.etcd.Client()
		for key, value := range keys {
			if _, err := client.Put(t.Context(), key, value); err != nil {
				t.Fatal(err)
			}
		}
		_ = client.Close()

		shards := map[string]*member{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
			r.URL.Path = "/" + path
			tm.mu.Lock()
			m := shards[name]
			tm.mu.Unlock()
			Handler(func(string, int) *Shard {
				if m == nil {
					return nil
				}
				return m.Shard
			}).ServeHTTP(w, r)
		}))
		peers := func(o *Options) { o.Peers = peersByName{server.URL} }
		start := func(name string, server int) *member {
			m := tm.start(t, name, server%servers, nil, quickFlush, peers)
			tm.mu.Lock()
			shards[name] = m
			tm.mu.Unlock()
			return m
		}
		b, c := start("b", 1), start("c", 2)
		for _, m := range []*member{b, c} {
			eventually(t, "an empty member that waits for the content",
				func() bool { return errors.Is(m.Status().Err, errBehind) })
		}
		if owner := b.Owner(); owner.Member != "" {
			t.Fatalf("got owner %v of a shard whose content no member has, want none", owner)
		}
		a := start("a", 0)
		e := a.awaitOwner(t)
		wantTexts(t, e, texts...)
		appendText(t, e, "later")
		b.awaitApplied(t, a.Status().Applied)
		c.awaitApplied(t, a.Status().Applied)
		a.stop(t)
		var next engine.Engine
		eventually(t, "another owner", func() bool {
			for _, m := range []*member{b, c} {
				if e, err := m.Engine(); err == nil {
					next = e
				}
			}
			return next != nil
		})
		wantTexts(t, next, append(texts, "later")...)
		b.stop(t)
		c.stop(t)
		server.Close()
	}
}

// TestSeedElsewhere seeds a member that should not have a copy: it keeps the content until
// the preferred member has it.
func TestSeedElsewhere(t *testing.T) {
	t.Parallel()
	f := newFive(t) // the preferred member of its shard is b
	seed := NewSeed()
	at, err := seed.StorePosition()
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"a", "b", "c", "d", "e"}
	keys, err := SeedKeys("/shards", f.cluster, f.number, seed, all, 1, "a")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := keys["/shards/"+f.cluster+"/1/places"], `{"members":["b","a"]}`; got != want {
		t.Errorf("got places %s, want %s", got, want)
	}
	client := f.g.etcd.Client()
	for key, value := range keys {
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	_ = client.Close()
	texts := seedStore(t, f.dir+"/a", at)
	for _, name := range []string{"c", "b", "a"} {
		m := f.run(t, name)
		m.SetCopies(1)
		defer m.stop(t)
	}
	b := f.all["b"]
	wantTexts(t, b.awaitOwner(t), texts...)
	eventually(t, "the first copy removed", func() bool {
		held, _ := f.all["a"].holds()
		return !held
	})
	wantTexts(t, b.awaitOwner(t), texts...)
}

// seedStore creates a store with messages and a position.
func seedStore(t *testing.T, dir string, at []byte) (texts []string) {
	t.Helper()
	alone := t.TempDir()
	e, err := pebble.Open(alone, pebble.Options{Splitter: enginetest.Lines{}})
	if err != nil {
		t.Fatal(err)
	}
	texts = fill(t, e, 30)
	if err := errors.Join(e.Checkpoint(t.Context(), dir), e.Close()); err != nil {
		t.Fatal(err)
	}
	store, err := pebble.OpenStore(dir, pebble.Options{Splitter: enginetest.Lines{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Apply(nil, at), store.Flush(), store.Close()); err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestCatchUp copies the shard on a standby right after the owner acknowledged messages: the
// copy contains all of them.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	tm := newTestEnsemble(t, 1, natstest.Unsafe).team()
	a := tm.start(t, "a", 0, nil)
	e := a.awaitOwner(t)
	b := tm.start(t, "b", 0, nil)
	texts := fill(t, e, 200)
	dir := t.TempDir() + "/copy"
	if err := errors.Join(b.CatchUp(t.Context()), b.Checkpoint(t.Context(), dir)); err != nil {
		t.Fatal(err)
	}
	alone, err := pebble.Open(dir, pebble.Options{Splitter: enginetest.Lines{}, MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	wantTexts(t, alone, texts...)
	if err := alone.Close(); err != nil {
		t.Error(err)
	}
	b.stop(t)
	a.stop(t)
}
