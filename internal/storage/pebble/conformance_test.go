package pebble

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, enginetest.Options{}, func(testing.TB) enginetest.Store {
		return &memoryStore{fs: vfs.NewCrashableMem()}
	})
}

// memoryStore is a store on a file system in memory that can simulate a power failure.
type memoryStore struct {
	fs   *vfs.MemFS
	open *Engine
	opts Options
}

func (s *memoryStore) Open(t testing.TB) engine.Engine {
	t.Helper()
	opts := s.opts
	opts.EraBytes = 1 << 10 // many eras
	opts.FS = s.fs
	opts.Splitter = enginetest.Lines{}
	if opts.MemTableBytes == 0 {
		opts.MemTableBytes = 1 << 20
	}
	e, err := Open("store", opts)
	if err != nil {
		t.Fatalf("open: got error %v, want none", err)
	}
	s.open = e
	return e
}

// Crash keeps synced data and a random part of the other data.
func (s *memoryStore) Crash(t testing.TB) {
	t.Helper()
	s.fs = s.fs.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: rand.IntN(101),
		RNG:                 rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	})
	if err := s.open.Close(); err != nil {
		t.Fatalf("close after a crash: got error %v, want none", err)
	}
}

// openMemory opens an engine on an empty store in memory and closes it when the test ends.
func openMemory(t *testing.T) *Engine {
	t.Helper()
	e, err := Open("store", Options{FS: vfs.NewMem(), MemTableBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: got error %v, want none", err)
		}
	})
	return e
}
