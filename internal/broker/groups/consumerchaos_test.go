package groups_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/broker/groups"
	"freshet/test/tally"
)

// TestFaultRandomConsumers checks for random actions of members with the consumer protocol, topic
// changes, lost responses and restarts of the coordinator that no two members in their session own
// the same partition, and that the group becomes stable with every partition assigned.
func TestFaultRandomConsumers(t *testing.T) {
	t.Parallel()
	fault := tally.Fault{Name: "random joins, leaves, pauses, lost responses, topic changes and restarts of a " +
		"consumer group"}
	for seed := range uint64(rounds()) {
		synctest.Test(t, func(t *testing.T) {
			injected, checked := consumerRound(t, seed)
			fault.Injected += injected
			fault.Checked += checked
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	fault.Record(t)
}

// randomMember is a member with random behaviour.
type randomMember struct {
	*consumer
	lastHeartbeat time.Time // time of the last successful heartbeat
	pausedUntil   time.Time // end of the current pause
}

type consumerChaos struct {
	*harness
	rng     *rand.Rand
	ts      *topics
	members []*randomMember
	created int
	checked int
}

func consumerRound(t *testing.T, seed uint64) (injected, checked int) {
	w := newBubbleHarness(t)
	c := &consumerChaos{
		harness: w, ts: newTopics(map[string]int32{"x": 4, "y": 3}),
		rng: rand.New(rand.NewPCG(seed, 2)), //nolint:gosec // reproducible history
	}
	for range 300 {
		injected++
		c.inject()
		time.Sleep(time.Duration(c.rng.IntN(2000)) * time.Millisecond)
		for _, m := range c.members {
			if c.rng.IntN(3) == 0 && time.Now().After(m.pausedUntil) {
				c.step(m)
			}
		}
	}
	if len(c.members) == 0 {
		c.add()
	}
	for range 60 { // no more faults
		time.Sleep(groups.DefaultHeartbeatInterval)
		for _, m := range c.members {
			c.step(m)
		}
	}
	d, err := w.Describe(w.key)
	total, want := 0, 0
	for _, m := range c.members {
		total += len(m.owned)
	}
	for name, id := range c.ts.ids {
		if slices.ContainsFunc(c.members,
			func(m *randomMember) bool { return m.pattern != nil || slices.Contains(m.names, name) }) {
			want += int(c.ts.counts[id])
		}
	}
	if err != nil || d.State != "Stable" || len(d.Members) != len(c.members) || total != want {
		t.Errorf("group is %s with %d members and %d partitions (error %v) long after the last change, want it "+
			"stable with %d and %d",
			d.State, len(d.Members), total, err, len(c.members), want)
	}
	if err := errors.Join(w.Coordinator.Close(), w.engine.Close()); err != nil {
		t.Error(err)
	}
	return injected, c.checked
}

// add adds a member with a random subscription.
func (c *consumerChaos) add() {
	c.created++
	m := &randomMember{consumer: c.consumer(c.ts, fmt.Sprint("m", c.created), []string{"x", "y"}[:1+c.rng.IntN(2)]...)}
	switch c.rng.IntN(4) {
	case 0:
		all := ".*"
		m.names, m.pattern = nil, &all
	case 1:
		m.instance = fmt.Sprint("i", c.created)
	case 2:
		m.assignor = "range"
	}
	c.members = append(c.members, m)
}

// inject makes one random change.
func (c *consumerChaos) inject() {
	if len(c.members) == 0 {
		c.add()
		return
	}
	i := c.rng.IntN(len(c.members))
	m := c.members[i]
	switch c.rng.IntN(12) {
	case 0, 1:
		if len(c.members) < 6 {
			c.add()
		}
	case 2: // a member leaves or crashes
		if c.rng.IntN(2) == 0 {
			_ = m.leave(-1)
		}
		c.members = slices.Delete(c.members, i, i+1)
	case 3: // a new process replaces a static member
		if m.instance != "" && m.leave(-2) == nil {
			c.created++
			m.id, m.epoch, m.owned = fmt.Sprint("m", c.created), 0, nil
		}
	case 4:
		m.pausedUntil = time.Now().Add(time.Duration(c.rng.IntN(70)) * time.Second)
	case 5:
		c.restart()
	case 6:
		name := []string{"x", "y", "z"}[c.rng.IntN(3)]
		c.ts.set(name, c.ts.counts[c.ts.ids[name]]+int32(c.rng.IntN(3))) //nolint:gosec // small
	case 7:
		c.ts.set("z", 0)
	case 8:
		m.assignor = []string{"range", "uniform"}[c.rng.IntN(2)]
	}
}

// step sends a heartbeat, whose response may be lost.
func (c *consumerChaos) step(m *randomMember) {
	req := m.full()
	if m.epoch != 0 && c.rng.IntN(3) == 0 {
		req = m.brief()
		req.InstanceID = ""
	}
	if c.rng.IntN(15) == 0 {
		_, _ = c.ConsumerHeartbeat(c.Context(), c.key, req)
		return
	}
	switch err := m.send(req); {
	case err == nil:
		m.lastHeartbeat = time.Now()
	case errors.Is(err, groups.ErrUnknownMember), errors.Is(err, groups.ErrFencedEpoch),
		errors.Is(err, groups.ErrNoGroup):
		m.epoch, m.owned = 0, nil
	case errors.Is(err, groups.ErrUnreleasedInstance):
	default:
		c.Errorf("heartbeat of %s: %v", m.id, err)
	}
	var inSession []*consumer
	for _, other := range c.members {
		if time.Since(other.lastHeartbeat) < 45*time.Second {
			inSession = append(inSession, other.consumer)
		}
	}
	c.exclusive(inSession...)
	c.checked++
}
