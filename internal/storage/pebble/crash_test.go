package pebble

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
)

// powerStore simulates a power failure at a chosen write or sync of the file system.
type powerStore struct {
	rng   *rand.Rand
	cache *Cache
	fs    *vfs.MemFS
	open  *Engine
	steps atomic.Int64
	mu    sync.Mutex
	cut   chan struct{}
	left  *vfs.MemFS // the file system after the power failure
}

func newPowerStore(rng *rand.Rand, cache *Cache) *powerStore {
	return &powerStore{rng: rng, cache: cache, fs: vfs.NewCrashableMem()}
}

func (s *powerStore) Open(t testing.TB) engine.Engine {
	t.Helper()
	// Small write buffers, so that flushes and compactions happen in a history.
	e, err := Open("store", Options{
		FS:            errorfs.Wrap(s.fs, errorfs.InjectorFunc(s.count)),
		Cache:         s.cache,
		MemTableBytes: 32 << 10 << s.rng.IntN(4),
		EraBytes:      1 << (10 + s.rng.IntN(6)),
		TrimDelay:     time.Duration(s.rng.IntN(5)+1) * time.Millisecond,
		DedupWindow:   time.Hour,
		Splitter:      enginetest.Lines{},
	})
	if err != nil {
		t.Fatalf("open: got error %v, want none", err)
	}
	s.open = e
	return e
}

// count is called before each operation of the file system.
func (s *powerStore) count(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	left := s.steps.Add(-1)
	if isSync(op.Kind) {
		switch { // give readers time to see data before it is durable
		case left == 0:
			time.Sleep(300 * time.Microsecond)
		case left%3 == 0:
			time.Sleep(50 * time.Microsecond)
		}
	}
	if left == 0 {
		s.lose()
	}
	return nil
}

func isSync(k errorfs.OpKind) bool {
	return k == errorfs.OpFileSync || k == errorfs.OpFileSyncData || k == errorfs.OpFileSyncTo
}

func (s *powerStore) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left != nil {
		return
	}
	if s.cut != nil {
		close(s.cut)
	}
	s.left = s.fs.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: []int{0, 0, 20, 50, 90, 100}[s.rng.IntN(6)],
		RNG:                 s.rng,
	})
}

func (s *powerStore) CutAfter(steps int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut, s.left = make(chan struct{}), nil
	s.steps.Store(int64(steps))
	return s.cut
}

func (s *powerStore) Crash(t testing.TB) {
	t.Helper()
	s.lose()
	if err := s.open.Close(); err != nil {
		t.Fatalf("close after the power failure: got error %v, want none", err)
	}
	s.steps.Store(0)
	s.fs = s.left
}

// TestCrashHistories runs crashHistories histories, or FRESHET_CRASH_HISTORIES if that is
// set. It logs its seed, which FRESHET_CRASH_SEED repeats.
func TestCrashHistories(t *testing.T) {
	t.Parallel()
	n := crashHistories
	if testing.Short() {
		n = 100
	}
	if s := os.Getenv("FRESHET_CRASH_HISTORIES"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	if s := os.Getenv("FRESHET_CRASH_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d histories from seed %d", n, seed)
	cache := NewCache(8<<20, 1000, nil)
	t.Cleanup(cache.Close)
	// A history mostly waits, so many run concurrently, independently of -parallel.
	const lanes = 16
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			t.Run(fmt.Sprintf("lane=%d", lane), func(t *testing.T) {
				for i := lane; i < n && !t.Failed(); i += lanes {
					rng := rand.New(rand.NewPCG(seed, uint64(i)))
					enginetest.History(t, rng, newPowerStore(rand.New(rand.NewPCG(seed, ^uint64(i))), cache),
						1+rng.IntN(4)/3)
				}
			})
		})
	}
	wg.Wait()
}
