package groups_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/broker/groups"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/test/tally"
)

const (
	manyGroups  = 100
	manyMembers = 10 // of each group
)

// group returns a copy of the world that uses another group.
func (w *harness) group(i int) *harness {
	other := *w
	other.key.Group = fmt.Sprintf("g%03d", i)
	return &other
}

// TestFaultRestartWithManyMembers checks that a thousand members in a hundred groups of each
// protocol continue after a restart without joining again and without a new assignment.
func TestFaultRestartWithManyMembers(t *testing.T) {
	inBubble(t, func(w *harness) {
		ts := newTopics(map[string]int32{"orders": 2 * manyMembers})
		var wg sync.WaitGroup
		classic := make([][]groups.JoinResult, manyGroups)
		modern := make([][]*consumer, manyGroups)
		for i := range manyGroups {
			g := w.group(i)
			wg.Go(func() {
				joins := make([]<-chan outcome, manyMembers)
				for j := range joins {
					joins[j] = g.join(request(""))
				}
				classic[i] = g.joined(joins...)
				g.sync(classic[i]...)
			})
			other := w.group(manyGroups + i)
			for j := range manyMembers {
				m := other.consumer(ts, fmt.Sprint("m", j), "orders")
				modern[i] = append(modern[i], m)
				m.join()
			}
			other.settle(modern[i]...)
		}
		wg.Wait()
		before := w.journals()

		fault := tally.Fault{Name: "restart with 1,000 members in 100 groups of each protocol", Injected: 1}
		w.restart()
		time.Sleep(9 * time.Second) // almost a session timeout
		for i := range manyGroups {
			for _, r := range classic[i] {
				fault.Checked++
				g := w.group(i)
				if err := g.Heartbeat(g.key, groups.Caller{}, r.MemberID, "", r.Generation); err != nil {
					fault.Lost++
					w.Logf("classic member %s: %v", r.MemberID, err)
				}
			}
			for _, m := range modern[i] {
				fault.Checked++
				m.Coordinator = w.Coordinator
				epoch := m.epoch
				if err := m.send(m.brief()); err != nil || m.epoch != epoch || len(m.owned) != 2 {
					fault.Lost++
					w.Logf("consumer %s has %v in epoch %d after %d: %v", m.id, m.owned, m.epoch, epoch, err)
				}
			}
		}
		if after := w.journals(); after != before {
			fault.Wrong++
			w.Logf("journals went from %d to %d records, want no writes", before, after)
		}
		fault.Record(w.T)
	})
}

// failingEngine is an engine whose journals reject writes while broken is set.
type failingEngine struct {
	engine.Engine
	broken atomic.Bool
}

var errBroken = errors.New("disk is full")

func (f *failingEngine) Journal(ctx context.Context, name string) (engine.Journal, error) {
	journal, err := f.Engine.Journal(ctx, name)
	return &failingJournal{journal, f}, err
}

type failingJournal struct {
	engine.Journal
	engine *failingEngine
}

func (j *failingJournal) Append(ctx context.Context, after uint64, records ...[]byte) (uint64, error) {
	if j.engine.broken.Load() {
		return 0, errBroken
	}
	return j.Journal.Append(ctx, after, records...)
}

// TestFaultConsumersWithoutAJournal checks that members do not learn of changes that cannot be
// stored, and that members without changes continue.
func TestFaultConsumersWithoutAJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory, err := pebbletest.OpenMemory()
		if err != nil {
			t.Fatal(err)
		}
		e := &failingEngine{Engine: memory}
		w := &harness{T: t, engine: e, key: groups.Key{Tenant: "public", Group: "g"}}
		w.open()
		ts := newTopics(map[string]int32{"orders": 4})
		a, b, c := w.consumer(ts, "a", "orders"), w.consumer(ts, "b", "orders"), w.consumer(ts, "c", "orders")
		a.join()
		b.join()
		w.settle(a, b)
		epoch := a.epoch

		e.broken.Store(true)
		fault := tally.Fault{Name: "journal of a consumer group that cannot be written", Injected: 1}
		for range 3 {
			w.wantError(c.send(c.full()), errBroken)
			for _, m := range []*consumer{a, b} {
				fault.Checked++
				if err := m.send(m.full()); err != nil || m.epoch != epoch || len(m.owned) != 2 {
					fault.Wrong++
					w.Logf("%s has %v in epoch %d: %v", m.id, m.owned, m.epoch, err)
				}
			}
		}
		time.Sleep(time.Minute) // sessions end, which cannot be stored either
		e.broken.Store(false)
		c.join()
		time.Sleep(time.Minute)
		c.join()
		fault.Checked++
		if len(c.owned) != 4 || c.epoch <= epoch {
			fault.Lost++
			w.Logf("c has %v in epoch %d, want all partitions in an epoch after %d", c.owned, c.epoch, epoch)
		}
		fault.Record(t)
		if err := errors.Join(w.Coordinator.Close(), memory.Close()); err != nil {
			t.Error(err)
		}
	})
}
