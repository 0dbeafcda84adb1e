package groups

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"freshet/internal/storage/engine"
)

// consumers is the members of a group of the consumer protocol. The group's epoch
// is group.number. A consumer is never changed but for its times, only replaced,
// by put. Everything is guarded by group.mu.
type consumers struct {
	assigned int32  // the epoch for which targets were made
	assignor string // with which
	members  map[string]*consumer
	static   map[string]string    // instance id → member id
	holders  map[Partition]string // members that have a partition, or have not let it go yet
	// counts is the partitions of each subscribed topic when targets were made.
	counts   map[engine.TopicID]int32
	revision uint64 // of topics when counts was looked at

	// Changes and what of them is in the journal; see durableLocked.
	version, stored uint64
	changed         map[string]bool // members that were put or removed since the last write
	writing         chan struct{}   // closed when the write under way ends
	failed          error

	bytes int           // of what the members say of themselves
	all   *atomic.Int64 // and those of all groups
}

// stage is how far a member is on its way to its target.
type stage uint8

const (
	settled    stage = iota // it has its target of its epoch
	revoking                // it has to let partitions go first
	unreleased              // others have not let go what it will get
)

// consumer is a member of a group of the consumer protocol.
type consumer struct {
	id, instance, client, host, rack string
	rebalance                        time.Duration
	assignor                         string // "" for the coordinator's choice
	subscription
	topics []engine.TopicID // that the subscription stands for, in order

	epoch, previous int32
	stage           stage
	has             map[Partition]int32 // what it may use, and the epoch since which
	loses           map[Partition]int32 // what it has not let go yet
	target          []Partition         // in order

	revision uint64    // of topics when the subscription was resolved
	resolved time.Time // when that was
	expires  time.Time // end of its session
	revokeBy time.Time // end of its time to let partitions go
}

// size is how many bytes a member says of itself, and is assigned.
func (m *consumer) size() (n int) {
	for _, name := range m.names {
		n += len(name)
	}
	return n + len(m.pattern)*64 + 64*(len(m.has)+len(m.loses)+len(m.target)) + 16*len(m.topics)
}

// charge counts a member in or out.
func (cs *consumers) charge(m *consumer, by int) {
	n := by * m.size()
	cs.bytes += n
	cs.all.Add(int64(n))
}

func newConsumers(all *atomic.Int64) *consumers {
	return &consumers{
		all:      all,
		assignor: assignorUniform,
		members:  make(map[string]*consumer), static: make(map[string]string), holders: make(map[Partition]string),
		counts: make(map[engine.TopicID]int32), changed: make(map[string]bool),
	}
}

// becomeConsumersLocked makes an empty group one of the consumer protocol.
func (g *group) becomeConsumersLocked(join bool) error {
	if g.consumers != nil {
		return nil
	}
	if !join || len(g.members) > 0 || len(g.pending) > 0 {
		return ErrNotConsumers
	}
	g.consumers = newConsumers(&g.shard.c.bytes)
	g.consumers.assigned = g.number
	g.phase = empty
	return nil
}

// becomeClassicLocked makes an empty group one of the classic protocol. It may let
// the mutex go: what the last consumers have left is written down first.
func (g *group) becomeClassicLocked() error {
	for g.consumers != nil {
		switch cs := g.consumers; {
		case len(cs.members) > 0:
			return ErrProtocol
		case cs.stored == cs.version:
			g.consumers = nil
		default:
			if err := g.durableLocked(); err != nil {
				return err
			}
		}
	}
	return nil
}

// occupiedLocked says whether the group has members of either protocol.
func (g *group) occupiedLocked() bool {
	return len(g.members) > 0 || g.consumers != nil && len(g.consumers.members) > 0
}

// put adds a member, or replaces it by its next state.
func (cs *consumers) put(m *consumer) {
	if old := cs.members[m.id]; old != nil {
		cs.charge(old, -1)
		cs.release(old)
		if cs.static[old.instance] == old.id {
			delete(cs.static, old.instance)
		}
	}
	cs.members[m.id] = m
	cs.charge(m, 1)
	if m.instance != "" {
		cs.static[m.instance] = m.id
	}
	for _, held := range []map[Partition]int32{m.has, m.loses} {
		for p := range held {
			cs.holders[p] = m.id
		}
	}
	cs.touch(m.id)
}

// remove takes a member out.
func (cs *consumers) remove(m *consumer) {
	cs.charge(m, -1)
	cs.release(m)
	delete(cs.members, m.id)
	if cs.static[m.instance] == m.id {
		delete(cs.static, m.instance)
	}
	cs.touch(m.id)
}

// release frees what a member holds.
func (cs *consumers) release(m *consumer) {
	for _, held := range []map[Partition]int32{m.has, m.loses} {
		for p := range held {
			if cs.holders[p] == m.id {
				delete(cs.holders, p)
			}
		}
	}
}

// touch notes a change that is to be written down.
func (cs *consumers) touch(id string) {
	cs.version++
	if id != "" {
		cs.changed[id] = true
	}
}

// inOrder returns the members in the order of their ids.
func (cs *consumers) inOrder() []*consumer {
	return slices.SortedFunc(maps.Values(cs.members), func(a, b *consumer) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
}

// state returns the protocol's word for the group.
func (g *group) consumersStateLocked() string {
	cs := g.consumers
	switch {
	case len(cs.members) == 0:
		return "Empty"
	case g.number > cs.assigned:
		return "Assigning"
	}
	for _, m := range cs.members {
		if m.stage != settled || m.epoch != cs.assigned {
			return "Reconciling"
		}
	}
	return "Stable"
}

// unresolved says whether the topics of the member's subscription have to be
// found before the heartbeat can be handled, and of which subscription.
func (cs *consumers) unresolved(req *ConsumerRequest, wanted *subscription, found *resolution) (subscription, bool) {
	if req.Epoch < epochJoin {
		return subscription{}, false
	}
	m := cs.members[req.MemberID]
	if id, ok := cs.static[req.InstanceID]; m == nil && ok {
		m = cs.members[id] // whose place it may get
	}
	if m == nil {
		if req.Epoch != epochJoin {
			return subscription{}, false // it will be refused
		}
		m = &consumer{}
	}
	of := m.subscription
	if wanted != nil {
		of = req.merge(&m.subscription, wanted)
	}
	if found != nil && found.of.equal(&of) {
		return of, false
	}
	current := of.equal(&m.subscription) && m.revision == req.Topics.Revision() && time.Since(m.resolved) < refresh
	return of, !current
}

// expireLocked takes out members whose time is over.
func (g *group) expireConsumersLocked(now time.Time) {
	gone := false
	for _, m := range g.consumers.members {
		if !now.Before(m.expires) || !m.revokeBy.IsZero() && !now.Before(m.revokeBy) {
			g.consumers.remove(m)
			gone = true
		}
	}
	if gone {
		g.number++
	}
}
