package schemas

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/pebble"
)

// The server loses power while clients register schemas. After the restart every
// acknowledged registration exists, with the id that its client received.
func TestAcknowledgedRegistrationsSurviveACrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			fs := vfs.NewCrashableMem()
			acknowledged := registerUntilCrash(t, fs, seed)
			e, err := pebble.Open("store",
				pebble.Options{FS: fs.CrashClone(vfs.CrashCloneCfg{
					UnsyncedDataPercent: int(seed) * 20,
					RNG:                 rand.New(rand.NewPCG(seed, 1)),
				}), MemTableBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			j, err := e.Journal(t.Context(), "registry")
			if err != nil {
				t.Fatal(err)
			}
			r := openRegistry(t, j)
			defer r.Close()
			for text, want := range acknowledged {
				got, err := r.Lookup(t.Context(), "s", &Draft{Type: Avro, Text: text}, false)
				if err != nil || got.Schema.ID != want.ID || got.Version != want.Version {
					t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
				}
			}
			next := mustRegister(t, r, "other", avroRecord("After", "x"))
			for _, old := range acknowledged {
				if next.ID <= old.ID {
					t.Errorf("new id: got %d, want more than the old id %d", next.ID, old.ID)
				}
			}
		})
	}
}

// registerUntilCrash returns the registrations that were acknowledged before the
// crash. The store stays open, because a crash does not close it.
func registerUntilCrash(t *testing.T, fs *vfs.MemFS, seed uint64) map[string]Registered {
	t.Helper()
	e, err := pebble.Open("store", pebble.Options{FS: fs, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	j, err := e.Journal(t.Context(), "registry")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), j, Options{SnapshotBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if err := r.SetLevel(t.Context(), "s", None); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	acknowledged := map[string]Registered{}
	var wg sync.WaitGroup
	for client := range 4 {
		wg.Go(func() {
			for i := range 10 + int(seed)*5 {
				text := avroRecord("R", fmt.Sprintf("f%d_%d", client, i))
				got, err := r.Register(t.Context(), "s", &Draft{Type: Avro, Text: text})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acknowledged[text] = got
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return acknowledged
}
