package replicated

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/internal/base/cleanclose"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/ensemble/natsserver/natstest"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// keepers are members with copies on disk that fetch checkpoints from each other, each with a register
// of verified files.
type keepers struct {
	*team
	url string

	mu  sync.Mutex
	all map[string]*member
}

func newKeepers(t *testing.T) *keepers {
	t.Helper()
	k := &keepers{team: newTestEnsemble(t, 1, natstest.Unsafe).team(), all: map[string]*member{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		k.mu.Lock()
		m := k.all[name]
		k.mu.Unlock()
		http.StripPrefix("/"+name, Handler(func(string, int) *Shard {
			if m == nil {
				return nil
			}
			return m.Shard
		})).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	k.url = server.URL
	return k
}

func (k *keepers) run(t *testing.T, name string, change ...func(*Options)) *member {
	t.Helper()
	register, err := integrity.Open(filepath.Join(k.dir, name+"-integrity"), integrity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := k.start(t, name, 0, nil, append([]func(*Options){quickFlush, func(o *Options) {
		o.All = []string{"a", "b", "c"}
		o.Copies = 3
		o.Peers = peersByName{k.url}
		o.Integrity = register
	}}, change...)...)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[name] = m
	return m
}

// halt stops a member, which no other one can fetch from any more.
func (k *keepers) halt(t *testing.T, m *member) {
	t.Helper()
	k.mu.Lock()
	delete(k.all, m.name)
	k.mu.Unlock()
	m.stop(t)
}

// fillDense appends messages that cannot be compressed, so that most of a table consists of messages.
func fillDense(t *testing.T, e engine.Engine) (texts []string) {
	t.Helper()
	texts = fill(t, e, 1)
	for i := range 300 {
		var random [500]byte
		_, _ = rand.Read(random[:]) // never fails
		texts = append(texts, fmt.Sprintf("%d/%x", i, random))
		appendText(t, e, texts[i+1])
	}
	return texts
}

// awaitPurged waits until the log has lost its beginning, so that no copy can be made from it alone.
func awaitPurged(t *testing.T, m *member) {
	t.Helper()
	eventually(t, "the log purged", func() bool { return m.first(t) > 100 })
}

// awaitSound waits until the member's copy has everything up to a message, is verified and not damaged, and
// checks every block of it.
func (m *member) awaitSound(t *testing.T, to uint64) {
	t.Helper()
	m.awaitApplied(t, to)
	eventually(t, "copy of member "+m.name+" verified", func() bool {
		m.mu.Lock()
		sound := m.verified && m.stream != nil
		m.mu.Unlock()
		return sound && m.o.Integrity.Part(m.part()).Damaged.IsZero()
	})
	dir := filepath.Join(t.TempDir(), "copy")
	if err := m.Checkpoint(t.Context(), dir); err != nil {
		t.Fatalf("checkpoint of member %s: got error %v, want none", m.name, err)
	}
	if _, err := (pebble.Options{}).Disk().VerifyClosed(t.Context(), dir); err != nil {
		t.Fatalf("copy of member %s: got error %v, want none", m.name, err)
	}
}

// wantHealed checks that damage was found on the member, and that the damaged files are in quarantine.
func (m *member) wantHealed(t *testing.T, damages int) {
	t.Helper()
	part := m.o.Integrity.Part(m.part())
	if part.Damages != damages || part.Healed.IsZero() || !part.Damaged.IsZero() {
		t.Errorf("got %+v on member %s, want it healed %d times", part, m.name, damages)
	}
	if got := len(m.o.Integrity.Quarantined()); got != damages {
		t.Errorf("got %d entries in quarantine, want %d", got, damages)
	}
}

// storeFiles returns the paths of the files of a store whose names have the prefix and the suffix.
func storeFiles(t *testing.T, dir, prefix, suffix string) (paths []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		t.Fatalf("got no file %s*%s in %s, want one", prefix, suffix, dir)
	}
	return paths
}

// harm damages a file in one of the ways "flip", "cut", "zero" and "delete".
func harm(t *testing.T, path, how string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return // a compaction has replaced it
	}
	if err != nil {
		t.Fatal(err)
	}
	switch how {
	case "delete":
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	case "cut":
		if err := os.Truncate(path, int64(len(data)/2)); err != nil {
			t.Fatal(err)
		}
		return
	}
	if len(data) == 0 {
		return // a marker
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	at, wrong := len(data)/3, []byte{data[len(data)/3] ^ 0x10}
	if how == "zero" {
		wrong = make([]byte, min(4096, len(data)-at))
	}
	_, err = file.WriteAt(wrong, int64(at))
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// harmTables damages all tables of a running member.
func harmTables(t *testing.T, dir, how string) {
	t.Helper()
	for _, path := range storeFiles(t, dir, "", ".sst") {
		harm(t, path, how)
	}
}

// asKilled makes the store of a stopped member look like that of a killed one.
func asKilled(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, cleanclose.Name)); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedStopped damages every kind of file of a stopped or killed member, one after the other. The
// member starts, replaces its copy by that of another member, and serves every message.
func TestDamagedStopped(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	a := k.run(t, "a")
	e := a.awaitOwner(t)
	texts := fillDense(t, e)
	b := k.run(t, "b")
	c := k.run(t, "c")
	b.awaitSound(t, a.Status().Applied)
	c.awaitSound(t, a.Status().Applied)
	awaitPurged(t, a)
	damages := 0
	kinds := []struct{ prefix, suffix string }{
		{"", ".sst"}, {"MANIFEST-", ""}, {"OPTIONS-", ""}, {"marker.manifest.", ""}, {"marker.format-version.", ""},
	}
	for _, kind := range kinds {
		for i, how := range []string{"flip", "cut", "zero", "delete"} {
			killed := i%2 == 0
			what := fmt.Sprintf("%s of %s*%s, killed %t", how, kind.prefix, kind.suffix, killed)
			marker := strings.HasPrefix(kind.prefix, "marker.")
			if marker && how != "delete" {
				continue // a marker has no content
			}
			k.halt(t, b)
			if killed {
				asKilled(t, b.o.Dir)
			}
			harm(t, storeFiles(t, b.o.Dir, kind.prefix, kind.suffix)[0], how)
			text := "after " + what
			appendText(t, e, text)
			texts = append(texts, text)
			b = k.run(t, "b")
			b.awaitSound(t, a.Status().Applied)
			// What a killed store has lost of its options, its next start writes again; a cut manifest is an
			// older state, which the log continues.
			if !killed || kind.suffix == ".sst" {
				damages++
				b.wantHealed(t, damages)
			} else {
				damages = b.o.Integrity.Part(b.part()).Damages
			}
			if t.Failed() {
				t.Fatalf("after %s", what)
			}
		}
	}
	k.halt(t, a)
	wantTexts(t, awaitOneOwner(t, b, c), texts...)
	k.halt(t, c)
	wantTexts(t, b.awaitOwner(t), texts...)
	k.halt(t, b)
}

// awaitOneOwner waits until one of the members is the owner, and returns its engine.
func awaitOneOwner(t *testing.T, members ...*member) (owned engine.Engine) {
	t.Helper()
	eventually(t, "an owner", func() bool {
		return slices.ContainsFunc(members, func(m *member) bool {
			e, err := m.Engine()
			owned = e
			return err == nil
		})
	})
	return owned
}

// awaitAnyOwner waits until one of the members is the owner, and returns its engine.
func awaitAnyOwner(t *testing.T, members ...*member) (e engine.Engine) {
	t.Helper()
	eventually(t, "an owner", func() bool {
		for _, m := range members {
			var err error
			if e, err = m.Engine(); err == nil {
				return true
			}
		}
		return false
	})
	return e
}

// TestDamagedRunning damages tables of the running owner, which then reads them. Its copy is replaced, and
// every message can be read meanwhile.
func TestDamagedRunning(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"flip", "cut", "zero", "delete"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			k := newKeepers(t)
			a := k.run(t, "a")
			e := a.awaitOwner(t)
			texts := fillDense(t, e)
			b := k.run(t, "b")
			b.awaitSound(t, a.Status().Applied)
			awaitPurged(t, a)
			k.halt(t, a) // so that a has no table open
			b.awaitOwner(t)
			a = k.run(t, "a", func(o *Options) {
				if how == "delete" { // an open table can be read
					o.VerifyInterval = 100 * time.Millisecond
				}
			})
			a.awaitSound(t, b.Status().Applied)
			b.requestHandOver()
			b.postponeCampaign(time.Minute)
			e = a.awaitOwner(t)
			b.postponeCampaign(0)
			harmTables(t, a.o.Dir, how)
			eventually(t, "a call that fails", func() bool {
				_, err := e.Read(t.Context(), 1, engine.ReadRequest{Max: 10000})
				return errors.Is(err, engine.ErrNotOwner)
			})
			eventually(t, "the copy healed", func() bool { return !a.o.Integrity.Part(a.part()).Healed.IsZero() })
			wantTexts(t, awaitAnyOwner(t, a, b), texts...)
			a.awaitSound(t, b.Status().Applied)
			a.wantHealed(t, 1)
			k.halt(t, b)
			wantTexts(t, a.awaitOwner(t), texts...)
			k.halt(t, a)
		})
	}
}

// TestDamagedStandby damages a table of a running standby, which nothing reads: the periodic verification
// finds it.
func TestDamagedStandby(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	a := k.run(t, "a")
	texts := fillDense(t, a.awaitOwner(t))
	b := k.run(t, "b", func(o *Options) { o.VerifyInterval = 100 * time.Millisecond })
	b.awaitSound(t, a.Status().Applied)
	awaitPurged(t, a)
	harmTables(t, b.o.Dir, "flip")
	eventually(t, "the copy healed", func() bool { return !b.o.Integrity.Part(b.part()).Healed.IsZero() })
	b.awaitSound(t, a.Status().Applied)
	b.wantHealed(t, 1)
	k.halt(t, a)
	wantTexts(t, b.awaitOwner(t), texts...)
	k.halt(t, b)
}

// offerTables makes the member offer a checkpoint of the tables that its store has now. A compaction may
// have replaced those of an earlier checkpoint.
func (m *member) offerTables(t *testing.T) {
	t.Helper()
	eventually(t, "a checkpoint of the store's tables", func() bool {
		if err := m.checkpoints.sweep(m.disk, 0); err != nil {
			t.Fatal(err)
		}
		offered, err := m.offer(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(storeFiles(t, m.o.Dir, "", ".sst"), func(path string) bool {
			return !slices.ContainsFunc(offered.Files, func(f fileInfo) bool { return f.Name == filepath.Base(path) })
		})
	})
}

// TestDamagedSource damages the only copy. A new member gets nothing from it. The copy stays where it is,
// closed, until a good copy returns.
func TestDamagedSource(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	a := k.run(t, "a")
	texts := fillDense(t, a.awaitOwner(t))
	b := k.run(t, "b")
	b.awaitSound(t, a.Status().Applied)
	awaitPurged(t, a)
	k.halt(t, b)
	a.offerTables(t) // a checkpoint that is offered again
	harmTables(t, a.o.Dir, "flip")
	c := k.run(t, "c")
	eventually(t, "the only copy closed", func() bool { return errors.Is(a.Status().Err, errNoGoodCopy) })
	if got := c.applied.Load(); got != 0 {
		t.Errorf("got a copy up to message %d from a damaged one, want none", got)
	}
	if _, err := a.Engine(); err == nil {
		t.Error("got an engine on a damaged copy, want none")
	}
	if got := a.o.Integrity.Quarantined(); len(got) != 0 {
		t.Errorf("got %+v in quarantine, want the only copy kept", got)
	}
	storeFiles(t, a.o.Dir, "", ".sst")
	if got := a.o.Integrity.Part(a.part()); got.Damaged.IsZero() || !strings.HasSuffix(got.File, ".sst") {
		t.Errorf("got %+v, want a damaged table", got)
	}
	eventually(t, "the problem published", func() bool {
		return slices.ContainsFunc(c.Status().Copies, func(c Copy) bool {
			return c.Member == "a" && strings.Contains(c.Problem, ".sst") &&
				strings.Contains(c.Problem, "start the other members")
		})
	})
	b = k.run(t, "b")
	wantTexts(t, b.awaitOwner(t), texts...)
	to := b.Status().Applied
	for _, m := range []*member{a, c} {
		m.awaitSound(t, to)
	}
	a.wantHealed(t, 1)
	for _, m := range []*member{b, a, c} {
		wantTexts(t, awaitOneOwner(t, k.running()...), texts...)
		k.halt(t, m)
	}
}

func (k *keepers) running() (members []*member) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range k.all {
		members = append(members, m)
	}
	return members
}

// TestDamagedFromLog damages the only copy while the log still has its first message: the copy is made from
// the log.
func TestDamagedFromLog(t *testing.T) {
	t.Parallel()
	k := newKeepers(t)
	slow := func(o *Options) { o.FlushInterval = time.Hour }
	a := k.run(t, "a", slow)
	texts := fillDense(t, a.awaitOwner(t))
	to := a.Status().Applied
	k.halt(t, a)
	harmTables(t, a.o.Dir, "flip")
	a = k.run(t, "a", slow)
	a.awaitSound(t, to)
	a.wantHealed(t, 1)
	wantTexts(t, a.awaitOwner(t), texts...)
	k.halt(t, a)
}

// TestUnverifiedHoldsBack checks when a member with an unverified copy leaves a shard to others.
func TestUnverifiedHoldsBack(t *testing.T) {
	t.Parallel()
	register, err := integrity.Open(t.TempDir(), integrity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Shard{o: Options{Cluster: "c", Integrity: register}, changed: make(chan struct{})}
	recent, long := time.Now(), time.Now().Add(-time.Hour)
	if !s.holdsBack(recent) || s.holdsBack(long) {
		t.Error("got an unverified copy that does not wait for others, or waits forever")
	}
	register.Damaged(s.part(), "000001.sst", engine.ErrCorrupt)
	if !s.holdsBack(long) {
		t.Error("got a damaged copy that may own the shard, want it closed until it is verified")
	}
	is := replicaStatus{Applied: 7, Flushed: 7, InSync: true}
	if got := s.countedLocked(is); got.Flushed != 0 || got.InSync || got.Applied != 7 {
		t.Errorf("got %+v for an unverified copy, want nothing flushed", got)
	}
	s.setVerified(true)
	if s.holdsBack(recent) || s.countedLocked(is) != is {
		t.Error("got a verified copy that waits for others, want none")
	}
}
