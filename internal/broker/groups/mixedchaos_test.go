package groups_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/broker/groups"
	"freshet/test/tally"
)

// TestFaultMixedConsumers checks for random joins and leaves of members of both protocols in one group that no two
// members own the same partition, and that every partition has an owner in the end.
func TestFaultMixedConsumers(t *testing.T) {
	t.Parallel()
	fault := tally.Fault{Name: "random joins and leaves of members of both group protocols in one group"}
	for seed := range uint64(rounds()) {
		synctest.Test(t, func(t *testing.T) {
			injected, checked := mixedRound(t, seed)
			fault.Injected += injected
			fault.Checked += checked
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	fault.Record(t)
}

// mixedChaos is a group whose members own partitions of topic x.
type mixedChaos struct {
	*harness
	ts *topics

	mu      sync.Mutex
	owners  map[groups.Partition]string
	checked int
}

// set records what a member owns and checks that no other member owns it.
func (c *mixedChaos) set(member string, owned []groups.Partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, owner := range c.owners {
		if owner == member {
			delete(c.owners, p)
		}
	}
	for _, p := range owned {
		if other, ok := c.owners[p]; ok {
			c.Errorf("%s and %s both own %v", other, member, p)
		}
		c.owners[p] = member
	}
	c.checked++
}

// runClassic is a classic member that gives up its partitions before it joins again. It leaves when ctx ends.
func (c *mixedChaos) runClassic(ctx context.Context, name string) {
	m := &classicConsumer{harness: c.harness, ts: c.ts, names: []string{"x"}}
	for ctx.Err() == nil {
		c.set(name, nil)
		joined, err := c.Join(ctx, c.key, m.request())
		switch {
		case errors.Is(err, groups.ErrUnknownMember):
			m.id = ""
			continue
		case err != nil:
			time.Sleep(100 * time.Millisecond)
			continue
		}
		m.id, m.generation = joined.MemberID, joined.Generation
		synced, err := c.Sync(ctx, c.key, &groups.SyncRequest{
			MemberID: m.id, Generation: m.generation, Assignments: c.assignments(&joined),
		})
		if err != nil {
			continue
		}
		owned, _ := c.ts.Assignment(synced.Assignment)
		if synced.Assigned != nil {
			owned = synced.Assigned.Partitions
		}
		c.set(name, owned)
		for ctx.Err() == nil && c.Heartbeat(c.key, groups.Caller{}, m.id, "", m.generation) == nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
	c.set(name, nil)
	_, _ = c.Leave(c.key, groups.Caller{}, []groups.LeavingMember{{MemberID: m.id}})
}

// assignments returns the leader's assignments of topic x.
func (c *mixedChaos) assignments(joined *groups.JoinResult) map[string][]byte {
	if len(joined.Members) == 0 {
		return nil
	}
	shares := make([][]groups.Partition, len(joined.Members))
	for i, p := range allPartitions(c.ts.ids["x"], c.ts.counts[c.ts.ids["x"]]) {
		shares[i%len(shares)] = append(shares[i%len(shares)], p)
	}
	all := make(map[string][]byte)
	for i, m := range joined.Members {
		all[m.ID], _ = json.Marshal(shares[i])
	}
	return all
}

// runConsumer is a member with the consumer protocol. It leaves when ctx ends.
func (c *mixedChaos) runConsumer(ctx context.Context, name string) {
	m := c.consumer(c.ts, name, "x")
	for ctx.Err() == nil {
		err := m.send(m.full())
		if err != nil {
			m.epoch, m.owned = 0, nil
		}
		c.set(name, m.owned)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	c.set(name, nil)
	_ = m.leave(-1)
}

func mixedRound(t *testing.T, seed uint64) (injected, checked int) {
	w := newBubbleHarness(t)
	c := &mixedChaos{
		harness: w, ts: newTopics(map[string]int32{"x": 6}), owners: make(map[groups.Partition]string),
	}
	rng := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // reproducible history
	var stops []context.CancelFunc
	var running sync.WaitGroup
	for i := range 60 {
		injected++
		switch {
		case len(stops) < 4 && (len(stops) == 0 || rng.IntN(2) == 0):
			ctx, stop := context.WithCancel(context.Background())
			stops = append(stops, stop)
			run := c.runClassic
			if rng.IntN(2) == 0 {
				run = c.runConsumer
			}
			running.Go(func() { run(ctx, fmt.Sprint("m", i)) })
		case len(stops) > 1:
			at := rng.IntN(len(stops))
			stops[at]()
			stops = append(stops[:at], stops[at+1:]...)
		}
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
	}
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	c.mu.Lock()
	if len(c.owners) != 6 {
		t.Errorf("partitions have the owners %v, want an owner of each of 6", c.owners)
	}
	checked = c.checked
	c.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	running.Wait()
	if err := errors.Join(w.Coordinator.Close(), w.engine.Close()); err != nil {
		t.Error(err)
	}
	return injected, checked
}
