package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
)

// memoryLog is an external log that outlives the store.
type memoryLog struct {
	mu      sync.Mutex
	batches [][]byte
	steps   int           // appends until the power failure, when cut is not nil
	cut     chan struct{} // closed at the power failure
	sealed  bool          // the log rejects appends of the current writer
	writer  int           // number of the writer that may append
	stale   bool          // the ownership lease has expired
	full    bool
}

var errSealed = errors.New("log has another writer")

// logWriter implements Log for one owner.
type logWriter struct {
	log    *memoryLog
	number int
}

// newWriter fences off all earlier writers.
func (l *memoryLog) newWriter() *logWriter {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writer++
	l.sealed, l.stale = false, false
	return &logWriter{l, l.writer}
}

type memoryAppend struct {
	w     *logWriter
	batch []byte
}

func (w *logWriter) Append(batch []byte) LogAppend { return &memoryAppend{w, batch} }

func (w *logWriter) Live() bool {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return !w.log.stale
}

func (w *logWriter) Full() (messages, records bool) {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.log.full, w.log.full
}

func (*logWriter) Crowded() bool { return false }

// Wait appends with a delay, so that batches are in flight for longer than they take to apply.
func (p *memoryAppend) Wait() ([]byte, error) {
	time.Sleep(200 * time.Microsecond)
	l := p.w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut != nil {
		if l.steps--; l.steps == 0 {
			close(l.cut)
			l.sealed = true
			if len(p.batch)%2 == 0 { // the log may have the batch although it did not acknowledge it
				l.batches = append(l.batches, append([]byte(nil), p.batch...))
			}
		}
	}
	if l.sealed || p.w.number != l.writer {
		return nil, errSealed
	}
	l.batches = append(l.batches, append([]byte(nil), p.batch...))
	return encodeLogPosition(len(l.batches)), nil
}

func encodeLogPosition(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// follow applies to a store the batches of the log that it does not have.
func (l *memoryLog) follow(t testing.TB, s *Store) {
	t.Helper()
	at, err := s.LogPosition()
	if err != nil {
		t.Fatal(err)
	}
	from := 0
	if at != nil {
		from = int(binary.BigEndian.Uint64(at))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if from > len(l.batches) {
		t.Fatalf("got a store with %d batches, want no more than the %d of its log", from, len(l.batches))
	}
	for i := from; i < len(l.batches); i++ {
		if err := s.Apply(append([]byte(nil), l.batches[i]...), encodeLogPosition(i+1)); err != nil {
			t.Fatal(err)
		}
	}
}

// loggedStore is a store with an external log. A crash loses the data that was not flushed,
// or is only a change of owner.
type loggedStore struct {
	rng    *rand.Rand
	log    *memoryLog
	fs     *vfs.MemFS
	store  *Store
	engine *Engine
	opts   Options
}

func newLoggedStore(rng *rand.Rand) *loggedStore {
	return &loggedStore{rng: rng, log: new(memoryLog), fs: vfs.NewCrashableMem()}
}

func (s *loggedStore) Open(t testing.TB) engine.Engine {
	t.Helper()
	opts := s.opts
	opts.FS, opts.Splitter = s.fs, enginetest.Lines{}
	if opts.EraBytes == 0 {
		opts.EraBytes = 1 << 10
	}
	if opts.MemTableBytes == 0 {
		opts.MemTableBytes = 1 << 20
	}
	if s.store == nil {
		store, err := OpenStore("store", opts)
		if err != nil {
			t.Fatalf("open the store: got error %v, want none", err)
		}
		s.store = store
	}
	s.log.follow(t, s.store)
	e, err := s.store.Open(s.log.newWriter())
	if err != nil {
		t.Fatalf("open: got error %v, want none", err)
	}
	s.engine = e
	return e
}

// Crash seals the log. Then it either discards the data that the store had not flushed, or
// keeps the store, as a change of owner does.
func (s *loggedStore) Crash(t testing.TB) {
	t.Helper()
	s.log.mu.Lock()
	s.log.sealed, s.log.cut = true, nil
	s.log.mu.Unlock()
	change := s.rng.IntN(2) == 0
	var left *vfs.MemFS
	if !change {
		left = s.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: s.rng.IntN(101), RNG: s.rng})
	}
	if err := s.engine.Close(); err != nil {
		t.Fatalf("close after the power failure: got error %v, want none", err)
	}
	if change {
		return
	}
	if err := s.store.Close(); err != nil {
		t.Fatalf("close the store after the power failure: got error %v, want none", err)
	}
	s.store, s.fs = nil, left
}

func (s *loggedStore) CutAfter(steps int) <-chan struct{} {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.cut, s.log.steps = make(chan struct{}), steps
	return s.log.cut
}

func TestConformanceLogged(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, enginetest.Options{}, func(t testing.TB) enginetest.Store {
		s := newLoggedStore(rand.New(rand.NewPCG(rand.Uint64(), 0)))
		t.Cleanup(func() {
			if s.store != nil {
				if err := s.store.Close(); err != nil {
					t.Errorf("close the store: got error %v, want none", err)
				}
			}
		})
		return s
	})
}

// TestLoggedHistories runs histories over stores with an external log. It logs its seed.
func TestLoggedHistories(t *testing.T) {
	t.Parallel()
	n := crashHistories / 2
	if testing.Short() {
		n = 100
	}
	seed := rand.Uint64()
	t.Logf("%d histories from seed %d", n, seed)
	cache := NewCache(8<<20, 1000, nil)
	t.Cleanup(cache.Close)
	const lanes = 16
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			t.Run(fmt.Sprintf("lane=%d", lane), func(t *testing.T) {
				for i := lane; i < n && !t.Failed(); i += lanes {
					rng := rand.New(rand.NewPCG(seed, uint64(i)))
					s := newLoggedStore(rand.New(rand.NewPCG(seed, ^uint64(i))))
					s.opts = Options{
						Cache:         cache,
						MemTableBytes: 32 << 10 << s.rng.IntN(4),
						EraBytes:      1 << (10 + s.rng.IntN(6)),
						TrimDelay:     time.Duration(s.rng.IntN(5)+1) * time.Millisecond,
						DedupWindow:   time.Hour,
					}
					enginetest.History(t, rng, s, 1+rng.IntN(3))
					if err := s.store.Close(); err != nil {
						t.Errorf("close the store: got error %v, want none", err)
					}
				}
			})
		})
	}
	wg.Wait()
}

// TestLostLog gives the log of an engine under load to another writer: calls return
// ErrNotOwner, unacknowledged writes stay invisible, and the store can be used again.
func TestLostLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newLoggedStore(rand.New(rand.NewPCG(1, 2)))
	e := s.Open(t)
	if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
		t.Fatal(err)
	}
	if err := e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}); err != nil {
		t.Fatal(err)
	}
	j, err := e.Journal(ctx, "j")
	if err != nil {
		t.Fatal(err)
	}
	cut := s.CutAfter(50)
	var acked [8]uint64
	var unknown atomic.Int64
	var wg sync.WaitGroup
	for w := range acked {
		wg.Go(func() {
			for {
				out, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("m")}})
				if err != nil {
					if !errors.Is(err, engine.ErrNotOwner) {
						t.Errorf("append without the log: got error %v, want %v", err, engine.ErrNotOwner)
					}
					if !errors.Is(err, engine.ErrNotBegun) {
						unknown.Add(1)
					}
					return
				}
				acked[w] = out[0].ID.Entry + 1
			}
		})
	}
	wg.Go(func() {
		if _, err := e.Receive(ctx, 1, "s",
			engine.ReceiveRequest{Max: 1, Partition: 0, Wait: time.Minute}); err != nil {
			t.Errorf("receive before the log is lost: got error %v, want none", err)
		}
	})
	wg.Go(func() {
		if err := j.Wait(ctx, 0); !errors.Is(err, engine.ErrNotOwner) {
			t.Errorf("wait for a journal without the log: got error %v, want %v", err, engine.ErrNotOwner)
		}
	})
	<-cut
	wg.Wait()
	if unknown.Load() == 0 {
		t.Error("appends without the log: got ErrNotBegun for all, want another ErrNotOwner for those in flight")
	}
	if err := e.Health(); !errors.Is(err, engine.ErrNotOwner) || errors.Is(err, engine.ErrFailed) {
		t.Errorf("health without the log: got %v, want %v", err, engine.ErrNotOwner)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.store.s.failure(); err != nil {
		t.Errorf("health of the store: got %v, want none", err)
	}
	at, err := s.store.LogPosition()
	if err != nil {
		t.Fatal(err)
	}
	if got := int(binary.BigEndian.Uint64(at)); got > len(s.log.batches) {
		t.Errorf("got a store with %d batches, want no more than the %d of its log", got, len(s.log.batches))
	}
	e = s.Open(t)
	for _, next := range acked {
		if stats, err := e.DescribeTopic(ctx, 1); err != nil || stats.Partitions[0].Next < next {
			t.Errorf("got %+v, %v; want at least the %d messages that were acknowledged", stats.Partitions, err, next)
		}
	}
	closeLogged(t, s)
}

func closeLogged(t *testing.T, s *loggedStore) {
	t.Helper()
	if err := errors.Join(s.engine.Close(), s.store.Close()); err != nil {
		t.Errorf("close: got error %v, want none", err)
	}
}

// TestStaleOwner checks that an engine whose ownership lease has expired rejects calls, and
// that a full log rejects messages.
func TestStaleOwner(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := newLoggedStore(rand.New(rand.NewPCG(1, 2)))
	e := s.Open(t)
	if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
		t.Fatal(err)
	}
	if err := e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("m")}}); err != nil {
		t.Fatal(err)
	}
	s.log.mu.Lock()
	s.log.stale = true
	s.log.mu.Unlock()
	if got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: 0}); !errors.Is(err,
		engine.ErrNotOwner) {
		t.Errorf("receive after the lease: got %v, %v; want %v", got, err, engine.ErrNotOwner)
	}
	if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("m")}}); !errors.Is(err, engine.ErrNotBegun) {
		t.Errorf("append after the lease: got error %v, want ErrNotBegun, which guarantees that it had no effect", err)
	}
	s.log.mu.Lock()
	s.log.stale, s.log.full = false, true
	s.log.mu.Unlock()
	if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("m")}}); !errors.Is(err, engine.ErrDiskFull) {
		t.Errorf("append to a full log: got error %v, want %v", err, engine.ErrDiskFull)
	}
	got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: 0})
	if err != nil || len(got) != 1 {
		t.Fatalf("receive: got %v, %v; want the message", got, err)
	}
	if err := e.Settle(ctx, 1, "s", []engine.Settlement{{ID: got[0].ID}}); err != nil {
		t.Errorf("acknowledge with a full log: got error %v, want none", err)
	}
	closeLogged(t, s)
}
