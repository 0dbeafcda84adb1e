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
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/pebble"
	"freshet/test/tally"
)

// TestChoice checks which members get a copy.
func TestChoice(t *testing.T) {
	t.Parallel()
	set := func(names string) map[string]bool {
		is := map[string]bool{}
		for _, name := range strings.Fields(names) {
			is[name] = true
		}
		return is
	}
	for name, c := range map[string]struct {
		now, gone, there, caught string
		want                     int
		next                     string
	}{
		"no change":                              {"b c d", "", "a b c d e", "b c d", 3, "b c d"},
		"briefly absent":                         {"b c d", "", "a b d e", "b d", 3, "b c d"},
		"gone, replacement added":                {"b c d", "c", "a b d e", "b d", 3, "b c d e"},
		"gone, replacement caught up":            {"b c d e", "c", "a b d e", "b d e", 3, "b d e"},
		"two gone, one replacement lags":         {"b c d e a", "c d", "a b e", "b e", 3, "b c d e a"},
		"returned":                               {"b d e", "", "a b c d e", "b d e", 3, "b c d e"},
		"returned and caught up":                 {"b c d e", "", "a b c d e", "b c d e", 3, "b c d"},
		"returned just now":                      {"b d e", "", "a b d e", "b d e", 3, "b d e"},
		"more copies wanted":                     {"b c d", "", "a b c d e", "b c d", 5, "b c d e a"},
		"fewer copies wanted":                    {"b c d e a", "", "a b c d e", "a b c d e", 3, "b c d"},
		"fewer copies wanted, some lag":          {"b c d e a", "", "a b c d e", "b c e", 3, "b c d e"},
		"fewer copies wanted, too few caught up": {"b c d e a", "", "a b c d e", "b c", 3, "b c d e a"},
		"owner is not preferred for a copy":      {"a b c d", "", "a b c d e", "a b c d", 3, "b c d a"},
		"no other member is live":                {"b c d", "c d e a", "b", "b", 3, "b c d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self := "b"
			if strings.HasPrefix(c.now, "a") {
				self = "a"
			}
			is := holderChoice{
				ring: []string{"b", "c", "d", "e", "a"}, want: c.want, self: self, gone: set(c.gone),
				settled: set(c.there), caughtUp: set(c.caught),
			}
			if got := strings.Join(is.next(strings.Fields(c.now)), " "); got != c.next {
				t.Errorf("got %q, want %q", got, c.next)
			}
		})
	}
}

// TestRanking removes a member: its shards move to the other members, whose shards stay.
func TestRanking(t *testing.T) {
	t.Parallel()
	all := []string{"a", "b", "c"}
	for _, lost := range all {
		live := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == lost })
		moved := map[string]int{}
		for shard := range 12 {
			before, after := ranking(shard, all, nil, all)[0], ranking(shard, all, nil, live)[0]
			switch {
			case before == lost:
				moved[after]++
			case after != before:
				t.Errorf("shard %d without %s: got owner %s, want %s, which is live", shard, lost, after, before)
			}
		}
		for _, name := range live {
			if moved[name] != 2 {
				t.Errorf("without %s: got %d of its 4 shards for %s, want 2", lost, moved[name], name)
			}
		}
	}
	if got := ranking(4, []string{"a", "b", "c", "d"}, []string{"d", "a", "b"},
		[]string{"b", "d", "c"}); !slices.Equal(got, []string{"d", "b"}) {
		t.Errorf("got %v, want the live members with a copy, in their order", got)
	}
}

// five is an ensemble of five members that serve checkpoints to each other.
type five struct {
	*team
	mu  sync.Mutex
	all map[string]*member
	url string
}

func newFive(t *testing.T) *five {
	t.Helper()
	f := &five{team: newTestEnsemble(t, 1, natstest.Unsafe).team(), all: map[string]*member{}}
	f.number = 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		http.StripPrefix("/"+name, Handler(func(string, int) *Shard {
			f.mu.Lock()
			defer f.mu.Unlock()
			if m := f.all[name]; m != nil {
				return m.Shard
			}
			return nil
		})).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *five) run(t *testing.T, name string) *member {
	t.Helper()
	m := f.start(t, name, 0, nil, quickFlush, func(o *Options) {
		o.All, o.Copies = []string{"a", "b", "c", "d", "e"}, 3
		o.Settle, o.GoneAfter = 100*time.Millisecond, 2*time.Second
		o.Peers = peersByName{f.url}
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[name] = m
	return m
}

// copies waits until exactly these members have a copy that follows the log.
func (f *five) copies(t *testing.T, end uint64, names ...string) {
	t.Helper()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		f.mu.Lock()
		m := f.all[name]
		f.mu.Unlock()
		if m == nil {
			continue
		}
		has := slices.Contains(names, name)
		eventually(t, fmt.Sprintf("copies on %v; member %s was %+v", names, name, m.Status()), func() bool {
			is := m.Status()
			_, err := os.Stat(m.o.Dir)
			if !has {
				return is.Role == Elsewhere && os.IsNotExist(err)
			}
			return (is.Role == Standby || is.Role == Leading) && is.Applied >= end && err == nil &&
				len(is.Copies) == len(names)
		})
	}
}

// positionIn reads the position of a store in the log.
func positionIn(t *testing.T, dir string) logPosition {
	t.Helper()
	store, err := pebble.OpenStore(dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := store.LogPosition()
	at, decodeErr := decodeLogPosition(stored)
	if err := errors.Join(err, decodeErr, store.Close()); err != nil {
		t.Fatal(err)
	}
	return at
}

// TestFaultCopies keeps three copies of a shard in an ensemble of five: on the preferred
// members, on another member when one is gone, back when that one returns, and more or fewer
// when the number changes.
func TestFaultCopies(t *testing.T) {
	t.Parallel()
	f := newFive(t)
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		f.run(t, name)
	}
	b := f.all["b"]
	e := b.awaitOwner(t)
	texts := fill(t, e, 100)
	end := func() uint64 { return b.Status().Applied }
	f.copies(t, end(), "b", "c", "d")
	if got := f.all["a"].Owner().Member; got != "b" {
		t.Errorf("got owner %q at a member without a copy, want b", got)
	}
	eventually(t, "the log purged", func() bool { return b.first(t) > 50 })

	c := f.all["c"]
	f.mu.Lock()
	delete(f.all, "c")
	f.mu.Unlock()
	c.stop(t)
	appendText(t, e, "without c")
	texts = append(texts, "without c")
	f.copies(t, end(), "b", "d", "e")
	f.run(t, "c")
	appendText(t, e, "with c")
	texts = append(texts, "with c")
	f.copies(t, end(), "b", "c", "d")

	for _, m := range f.all {
		m.SetCopies(5)
	}
	f.copies(t, end(), "a", "b", "c", "d", "e")
	for _, m := range f.all {
		m.SetCopies(3)
	}
	f.copies(t, end(), "b", "c", "d")

	// A backup on a member without a copy contains the whole shard.
	for i := range 2 { // the second backup must not reuse the first checkpoint
		appendText(t, e, fmt.Sprint("backup ", i))
		texts = append(texts, fmt.Sprint("backup ", i))
		dir, want := fmt.Sprint(t.TempDir(), "/", i), end()
		if err := f.all["a"].Checkpoint(t.Context(), dir); err != nil {
			t.Errorf("checkpoint at a member without a copy: got error %v, want none", err)
		}
		if got := positionIn(t, dir).seq; got < want {
			t.Errorf("checkpoint at a member without a copy: got the log up to message %d, want %d", got, want)
		}
	}
	f.mu.Lock()
	delete(f.all, "b")
	f.mu.Unlock()
	b.stop(t)
	wantTexts(t, f.all["c"].awaitOwner(t), texts...)
	for _, name := range []string{"a", "e"} {
		if _, err := f.all[name].Engine(); err == nil {
			t.Errorf("member %s has no copy and an engine", name)
		}
	}
	for _, m := range f.all {
		m.stop(t)
	}
	tally.Fault{Name: "member with a copy gone and replaced", Injected: 2, Checked: len(texts)}.Record(t)
}

// slowKV answers its first read only after delay.
type slowKV struct {
	clientv3.KV
	delay time.Duration
	first sync.Once
}

func (kv *slowKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	kv.first.Do(func() {
		select {
		case <-ctx.Done():
		case <-time.After(kv.delay):
		}
	})
	return kv.KV.Get(ctx, key, opts...)
}

// TestOpenOnABusyMachine opens a shard although etcd takes longer than callTimeout to answer.
func TestOpenOnABusyMachine(t *testing.T) {
	t.Parallel()
	f := newFive(t)
	b := f.start(t, "b", 0, nil, func(o *Options) {
		o.All, o.Copies = []string{"a", "b", "c"}, 3
		o.Etcd.KV = &slowKV{KV: o.Etcd.KV, delay: callTimeout + time.Second}
	})
	b.awaitOwner(t)
}
