package statemachine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/btree"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/internal/storage/statemachine"
)

// counters is a state machine of named counters; a record is a name and increments its counter.
// Apply returns an error for the name "bad" and panics for "panic".
type counters struct {
	values *btree.Map[string, uint64]
	total  uint64
}

func newCounters() *counters { return &counters{values: new(btree.Map[string, uint64])} }

func (c *counters) Clone() *counters { return &counters{values: c.values.Copy(), total: c.total} }

func (c *counters) Apply(position uint64, record []byte) error {
	name := string(record)
	switch name {
	case "bad":
		return errors.New("bad record")
	case "panic":
		panic("at record")
	}
	n, _ := c.values.Get(name)
	c.values.Set(name, n+1)
	c.total++
	if c.total != position {
		return fmt.Errorf("record %d was applied at position %d", c.total, position)
	}
	return nil
}

func (c *counters) Snapshot(w io.Writer) error {
	b := binary.AppendUvarint(nil, c.total)
	c.values.Scan(func(name string, n uint64) bool {
		b = fmt.Appendf(b, "%s=%d\n", name, n)
		return true
	})
	_, err := w.Write(b)
	return err
}

func (c *counters) Restore(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	total, n := binary.Uvarint(data)
	c.total = total
	for line := range strings.Lines(string(data[n:])) {
		var name string
		var value uint64
		if _, err := fmt.Sscanf(strings.ReplaceAll(line, "=", " "), "%s %d", &name, &value); err != nil {
			return err
		}
		c.values.Set(name, value)
	}
	return nil
}

func options() statemachine.Options[*counters] {
	return statemachine.Options[*counters]{Name: "counters", Empty: newCounters()}
}

func openJournal(t *testing.T) engine.Journal {
	t.Helper()
	e, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	j, err := e.Journal(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func open(t *testing.T, j engine.Journal, opts statemachine.Options[*counters]) *statemachine.Machine[*counters] {
	t.Helper()
	m, err := statemachine.Open(t.Context(), j, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func add(names ...string) func(*counters) ([][]byte, error) {
	return func(*counters) ([][]byte, error) {
		records := make([][]byte, len(names))
		for i, name := range names {
			records[i] = []byte(name)
		}
		return records, nil
	}
}

func value(c *counters, name string) uint64 {
	n, _ := c.values.Get(name)
	return n
}

func TestUpdateShowsItsOwnWrite(t *testing.T) {
	t.Parallel()
	m := open(t, openJournal(t), options())
	state, err := m.Update(t.Context(), add("a", "b", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if value(state, "a") != 2 || value(state, "b") != 1 || value(m.View(), "a") != 2 || m.Position() != 3 {
		t.Fatalf("got a=%d b=%d, in the view a=%d, at %d; want 2, 1, 2, at 3", value(state, "a"), value(state, "b"),
			value(m.View(), "a"), m.Position())
	}
}

func TestUpdateWithoutRecordsWritesNothing(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	m := open(t, j, options())
	if _, err := m.Update(t.Context(), add()); err != nil {
		t.Fatal(err)
	}
	if last, err := j.Last(t.Context()); err != nil || last != 0 {
		t.Fatalf("end of the journal: got %d, %v; want 0", last, err)
	}
}

// TestConcurrentReplicasDecideOneAfterTheOther lets two replicas increment one counter while it
// is below a limit. The limit must hold, and no value may be decided on twice.
func TestConcurrentReplicasDecideOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const limit, writers = 60, 8
	j := openJournal(t)
	machines := []*statemachine.Machine[*counters]{open(t, j, options()), open(t, j, options())}
	errFull := errors.New("full")
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			m := machines[w%len(machines)]
			for {
				var got uint64
				_, err := m.Update(t.Context(), func(c *counters) ([][]byte, error) {
					if got = value(c, "x"); got >= limit {
						return nil, errFull
					}
					return [][]byte{[]byte("x")}, nil
				})
				if errors.Is(err, errFull) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[got] {
					t.Errorf("got value %d decided on twice, want once", got)
				}
				seen[got] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i, m := range machines {
		state, err := m.Fresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if value(state, "x") != limit {
			t.Errorf("machine %d: got %d, want %d", i, value(state, "x"), limit)
		}
	}
}

func TestFreshSeesOtherReplicas(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	a, b := open(t, j, options()), open(t, j, options())
	for i := range uint64(50) {
		if _, err := a.Update(t.Context(), add("x")); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				state, err := b.Fresh(t.Context())
				if err != nil || value(state, "x") <= i {
					t.Errorf("got %d, %v; want at least %d", value(state, "x"), err, i+1)
				}
			})
		}
		wg.Wait()
	}
}

func TestErrorOfDecideFailsItsCallerOnly(t *testing.T) {
	t.Parallel()
	m := open(t, openJournal(t), options())
	errMine := errors.New("mine")
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			var want error
			decide := add("ok")
			switch i % 4 {
			case 1:
				want = errMine
				decide = func(*counters) ([][]byte, error) { return nil, errMine }
			case 2:
				decide = func(*counters) ([][]byte, error) { panic("in decide") }
			case 3:
				decide = add("ok", "panic")
			}
			_, err := m.Update(t.Context(), decide)
			if i%4 == 0 && err != nil || i%4 != 0 && err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("update %d: got error %v, want one for all but every fourth, and %v if that is not nil", i,
					err, want)
			}
		})
	}
	wg.Wait()
	if got := value(m.View(), "ok"); got != 10 {
		t.Fatalf("got %d updates written, want 10", got)
	}
}

func TestCancelledCallerLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	m := open(t, openJournal(t), options())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Update(ctx, add("x")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := m.Fresh(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := m.Update(t.Context(), add("y")); err != nil {
		t.Fatal(err)
	}
	if value(m.View(), "y") != 1 {
		t.Fatalf("next update: got y=%d, want 1", value(m.View(), "y"))
	}
}

func TestUnreadableRecordRefusesToStart(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"bad", "panic"} {
		t.Run(bad, func(t *testing.T) {
			t.Parallel()
			j := openJournal(t)
			running := open(t, j, options())
			if _, err := j.Append(t.Context(), 0, []byte("a"), []byte("b"), []byte(bad), []byte("c")); err != nil {
				t.Fatal(err)
			}
			_, err := statemachine.Open(t.Context(), j, options())
			if err == nil || !strings.Contains(err.Error(), "position 3") {
				t.Fatalf("open: got error %v, want one that names position 3", err)
			}
			// A running replica rejects writes and keeps its last state.
			if _, err := running.Fresh(t.Context()); err == nil {
				t.Fatalf("fresh read on a broken replica: got no error, want %v", statemachine.ErrBroken)
			}
			if _, err := running.Update(t.Context(), add("x")); !errors.Is(err, statemachine.ErrBroken) {
				t.Fatalf("update: got error %v, want %v", err, statemachine.ErrBroken)
			}
			if running.Health() == nil || running.Position() != 0 {
				t.Fatalf("got health %v at position %d, want an error at 0", running.Health(), running.Position())
			}
		})
	}
}

// TestSnapshotAndReplayAgree checks that snapshots are saved as the journal grows, and that a
// machine that is opened later has the same state, from a snapshot, from records or from both.
func TestSnapshotAndReplayAgree(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	opts := options()
	opts.SnapshotBytes = 500
	m := open(t, j, opts)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		names := make([]string, rng.IntN(4))
		for i := range names {
			names[i] = fmt.Sprintf("counter-%d", rng.IntN(10))
		}
		if _, err := m.Update(t.Context(), add(names...)); err != nil {
			t.Fatal(err)
		}
	}
	saved := uint64(0)
	for saved == 0 {
		position, r, err := j.LoadSnapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r != nil {
			saved = position
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		} else if _, err := m.Update(t.Context(), add("more")); err != nil {
			t.Fatal(err)
		}
	}
	again := open(t, j, options())
	if again.Position() != m.Position() {
		t.Fatalf("got position %d, want %d", again.Position(), m.Position())
	}
	m.View().values.Scan(func(name string, n uint64) bool {
		if value(again.View(), name) != n {
			t.Errorf("%s: got %d, want %d", name, value(again.View(), name), n)
		}
		return true
	})
}

// TestSnapshotOfWhatWasReplayed checks that a snapshot of a long journal is saved some time
// after the start, also without further writes.
func TestSnapshotOfWhatWasReplayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t)
		var records [][]byte
		for range 100 {
			records = append(records, []byte("some-counter"))
		}
		if _, err := j.Append(t.Context(), 0, records...); err != nil {
			t.Fatal(err)
		}
		opts := options()
		opts.SnapshotBytes = 500
		open(t, j, opts)
		for _, want := range []uint64{0, 100} {
			position, r, err := j.LoadSnapshot(t.Context())
			if err != nil || position != want {
				t.Fatalf("got a snapshot at %d, %v; want %d", position, err, want)
			}
			if r != nil {
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * time.Minute) // simulated time
			synctest.Wait()
		}
	})
}

// TestReplicaBehindACompaction checks that a replica whose missing records were compacted
// reloads from the snapshot.
func TestReplicaBehindACompaction(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	slow := &gate{Journal: j, open: make(chan struct{})}
	behind := open(t, slow, options())
	ahead := open(t, j, options())
	for range 20 {
		if _, err := ahead.Update(t.Context(), add("x")); err != nil {
			t.Fatal(err)
		}
	}
	at := ahead.View()
	if err := j.SaveSnapshot(t.Context(), 20, at.Snapshot); err != nil {
		t.Fatal(err)
	}
	if _, err := ahead.Update(t.Context(), add("x")); err != nil {
		t.Fatal(err)
	}
	close(slow.open)
	state, err := behind.Fresh(t.Context())
	if err != nil || value(state, "x") != 21 {
		t.Fatalf("got x=%d, %v; want 21", value(state, "x"), err)
	}
}

// TestDecisionWithoutRecordsUsesTheNewestState checks that a decision that writes nothing is
// also made on a state with every acknowledged record of other replicas, even if the tail is
// late.
func TestDecisionWithoutRecordsUsesTheNewestState(t *testing.T) {
	t.Parallel()
	errThere := errors.New("there already")
	for name, decide := range map[string]func(*counters) ([][]byte, error){
		"refusal":       func(*counters) ([][]byte, error) { return nil, errThere },
		"nothing to do": func(*counters) ([][]byte, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := openJournal(t)
			behind := open(t, &gate{Journal: j, open: make(chan struct{})}, options())
			ahead := open(t, j, options())
			if _, err := ahead.Update(t.Context(), add("x")); err != nil {
				t.Fatal(err)
			}
			var saw uint64
			_, err := behind.Update(t.Context(), func(c *counters) ([][]byte, error) {
				saw = value(c, "x")
				return decide(c)
			})
			if err != nil && !errors.Is(err, errThere) {
				t.Fatal(err)
			}
			if saw != 1 {
				t.Fatalf("got a decision on x=%d, want x=1, which another replica had acknowledged", saw)
			}
		})
	}
}

// gate blocks Wait of a journal until it is opened.
type gate struct {
	engine.Journal
	open chan struct{}
}

func (g *gate) Wait(ctx context.Context, after uint64) error {
	select {
	case <-g.open:
		return g.Journal.Wait(ctx, after)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func BenchmarkUpdate(b *testing.B) {
	e, err := pebbletest.OpenMemory()
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	j, err := e.Journal(b.Context(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	m, err := statemachine.Open(b.Context(), j, options())
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := m.Update(b.Context(), add("x")); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
