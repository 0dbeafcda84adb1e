package groups_test

import (
	"cmp"
	"context"
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

// rounds returns the number of random histories to run.
func rounds() int {
	if tally.Long() {
		return 300
	}
	return 15
}

// chaos is a group with the classic protocol whose members join, leave, pause and crash while the
// coordinator is restarted.
type chaos struct {
	*testing.T
	w *harness

	mu     sync.RWMutex // held for writing while the coordinator restarts
	acks   sync.Mutex
	newest int32           // newest generation in which an assignment was acknowledged
	owners map[byte]string // partition → owner in the newest generation
	count  int             // number of acknowledgements
}

const chaosPartitions = 5

// coordinator returns the current coordinator.
func (c *chaos) coordinator() *groups.Coordinator {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.w.Coordinator
}

// acknowledged is called with every successful heartbeat, by which a member learns that its
// assignment is still valid. It checks that no newer generation was acknowledged before, and that
// no other member has the same partition in this generation.
func (c *chaos) acknowledged(id string, generation int32, parts []byte) {
	switch {
	case generation < c.newest:
		c.Errorf("heartbeat of %s in generation %d succeeded after generation %d was acknowledged",
			id, generation, c.newest)
	case generation > c.newest:
		c.newest, c.owners = generation, make(map[byte]string)
	}
	for _, p := range parts {
		if other, ok := c.owners[p]; ok && other != id {
			c.Errorf("%s and %s both have partition %d in generation %d", id, other, p, generation)
		}
		c.owners[p] = id
	}
	c.count++
}

// run is a client that joins, syncs and sends heartbeats until ctx ends.
func (c *chaos) run(ctx context.Context, rng *rand.Rand, instance string) {
	id := ""
	for ctx.Err() == nil {
		req := request(id)
		req.InstanceID = instance
		req.RebalanceTimeout = 2 * time.Second // a member that pauses misses a whole generation
		joined, err := c.coordinator().Join(ctx, c.w.key, req)
		if err != nil {
			if errors.Is(err, groups.ErrUnknownMember) || errors.Is(err, groups.ErrFencedInstance) {
				id = ""
			}
			pause(ctx, 100*time.Millisecond)
			continue
		}
		id = joined.MemberID
		synced, err := c.coordinator().Sync(ctx, c.w.key, c.assignments(&joined, instance))
		if err == nil {
			c.consume(ctx, rng, &joined, instance, synced.Assignment)
		} else if errors.Is(err, groups.ErrUnknownMember) {
			id = ""
		}
	}
}

// consume sends heartbeats until one is rejected. Sometimes it pauses, for less or more than the
// session timeout.
func (c *chaos) consume(ctx context.Context, rng *rand.Rand, joined *groups.JoinResult, instance string, parts []byte) {
	for ctx.Err() == nil {
		c.acks.Lock()
		err := c.coordinator().Heartbeat(c.w.key, groups.Caller{}, joined.MemberID, instance, joined.Generation)
		if err == nil {
			c.acknowledged(cmp.Or(instance, joined.MemberID), joined.Generation, parts)
		}
		c.acks.Unlock()
		switch {
		case errors.Is(err, groups.ErrClosed):
			pause(ctx, 50*time.Millisecond)
			continue
		case err != nil:
			return
		}
		wait := time.Second
		switch rng.IntN(30) {
		case 0:
			wait = 15 * time.Second
		case 1, 2:
			wait = 7 * time.Second
		}
		pause(ctx, wait)
	}
}

func (c *chaos) assignments(joined *groups.JoinResult, instance string) *groups.SyncRequest {
	req := &groups.SyncRequest{MemberID: joined.MemberID, InstanceID: instance, Generation: joined.Generation}
	if len(joined.Members) > 0 {
		req.Assignments = make(map[string][]byte)
		for p := range byte(chaosPartitions) {
			to := joined.Members[int(p)%len(joined.Members)].ID
			req.Assignments[to] = append(req.Assignments[to], p)
		}
	}
	return req
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestFaultRandomHistories checks for random actions of members and restarts of the coordinator
// that no older generation is acknowledged after a newer one, that no two members have the same
// partition, and that the group becomes stable in the end.
func TestFaultRandomHistories(t *testing.T) {
	t.Parallel()
	fault := tally.Fault{Name: "random joins, leaves, pauses, crashes and restarts of a classic group"}
	for seed := range uint64(rounds()) {
		synctest.Test(t, func(t *testing.T) {
			injected, checked := chaosRound(t, seed)
			fault.Injected += injected
			fault.Checked += checked
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	fault.Record(t)
}

func chaosRound(t *testing.T, seed uint64) (injected, checked int) {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // reproducible history
	w := newBubbleHarness(t)
	c := &chaos{T: t, w: w, owners: make(map[byte]string)}
	var running []context.CancelFunc
	var wg sync.WaitGroup
	start := func() {
		ctx, cancel := context.WithCancel(t.Context())
		running = append(running, cancel)
		instance := ""
		if rng.IntN(3) == 0 {
			instance = fmt.Sprint("instance-", len(running), "-", rng.IntN(1000))
		}
		own := rand.New(rand.NewPCG(seed, rng.Uint64())) //nolint:gosec // reproducible history
		wg.Go(func() { c.run(ctx, own, instance) })
	}
	start()
	for range 40 {
		time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
		injected++
		switch rng.IntN(5) {
		case 0, 1:
			if len(running) < 6 {
				start()
			}
		case 2: // a member crashes
			if len(running) > 1 {
				i := rng.IntN(len(running))
				running[i]()
				running = append(running[:i], running[i+1:]...)
			}
		case 3: // a member leaves
			if d, err := w.Describe(w.key); err == nil && len(d.Members) > 1 {
				leaver := groups.LeavingMember{MemberID: d.Members[rng.IntN(len(d.Members))].ID}
				_, _ = w.Leave(w.key, groups.Caller{}, []groups.LeavingMember{leaver})
			}
		case 4:
			c.mu.Lock()
			w.restart()
			c.mu.Unlock()
		}
	}
	time.Sleep(5 * time.Minute) // longer than any timeout
	rest := func() bool {
		d, err := w.Describe(w.key)
		return err == nil && d.State == "Stable" && len(d.Members) == len(running)
	}
	for i := 0; !rest(); i++ { // members still pause sometimes
		if i == 100 {
			d, err := w.Describe(w.key)
			t.Errorf("group is %+v (error %v) long after the last change, want it stable with %d members", d,
				err, len(running))
			break
		}
		time.Sleep(3 * time.Second)
	}
	for _, cancel := range running {
		cancel()
	}
	wg.Wait()
	if err := errors.Join(w.Coordinator.Close(), w.engine.Close()); err != nil {
		t.Error(err)
	}
	return injected, c.count
}
