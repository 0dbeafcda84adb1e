package groups

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"freshet/internal/storage/engine"
)

// consumers is the part of a group that only the consumer protocol uses. The group's epoch is
// group.number. A consumer is immutable except for expires, revokeBy, revision and resolved; put replaces it.
// group.mu protects everything.
type consumers struct {
	assignmentEpoch int32  // epoch of the target assignments
	assignor        string // assignor of the target assignments
	members         map[string]*consumer
	static          map[string]string    // instance id → member id
	owners          map[Partition]string // partition → member that owns it or has not revoked it yet
	// partitionCounts is the number of partitions of each subscribed topic in the target assignments.
	partitionCounts map[engine.TopicID]int32
	revision        uint64 // Topics.Revision when counts was computed

	// Versions of the state in memory and in the journal; see waitDurableLocked.
	version, storedVersion uint64
	changed                map[string]bool // members changed or removed since the last write
	writing                chan struct{}   // closed when the write in progress ends
	failed                 error

	reading reading // topics of the members
	bytes   int     // memory of the members of this group
	group   *group  // counts the memory
}

// stage is the progress of a member towards its target.
type stage uint8

const (
	reconciled stage = iota // the member has its target
	revoking                // the member must revoke partitions first
	unreleased              // other members still own partitions of its target
)

// consumer is a member of a group with the consumer protocol.
type consumer struct {
	id, instance, client, host, rack string
	rebalanceTimeout                 time.Duration
	assignor                         string // "" for the coordinator's choice
	subscription
	topics []engine.TopicID // topics of the subscription, sorted

	epoch, previousEpoch int32
	stage                stage
	assigned             map[Partition]int32 // assigned partition → epoch of its assignment
	pendingRevocation    map[Partition]int32 // partitions that the member must revoke
	target               []Partition         // sorted
	classic              *classicMember      // set for a member that uses the classic protocol
	owner                owner

	revision uint64    // Topics.Revision when the subscription was resolved
	resolved time.Time // time when the subscription was resolved
	expires  time.Time // end of its session
	// revokeBy is the deadline of the revocation, and of a classic member's next request in a rebalance; zero for
	// none.
	revokeBy time.Time
}

// isInUse reports whether another member cannot take over the instance id yet. A classic member never releases its
// instance id.
func (m *consumer) isInUse() bool { return m.classic == nil && m.epoch != epochLeaveStatic }

// sessionTimeout returns how long the member may be silent.
func (m *consumer) sessionTimeout() time.Duration {
	if m.classic != nil {
		return m.classic.session
	}
	return consumerSessionTimeout
}

// size estimates the memory of a member's subscription and assignments.
func (m *consumer) size() (n int) {
	for _, name := range m.names {
		n += len(name)
	}
	if m.classic != nil {
		n += size(m.classic.protocols)
	}
	n += m.owner.size()
	return n + len(m.pattern)*64 + 64*(len(m.assigned)+len(m.pendingRevocation)+len(m.target)) + 16*len(m.topics)
}

// countBytes adds (by = 1) or subtracts (by = -1) the memory and the topics of a member.
func (cs *consumers) countBytes(m *consumer, by int) {
	n := by * m.size()
	cs.bytes += n
	if !cs.group.uncharged {
		cs.group.shard.c.memberBytes.Add(int64(n))
	}
	cs.reading.add(&m.owner, by)
	cs.group.chargeLocked(m.owner.principal, by*m.bytes())
}

func newConsumers(g *group) *consumers {
	return &consumers{
		group:    g,
		assignor: assignorUniform,
		members:  make(map[string]*consumer), static: make(map[string]string), owners: make(map[Partition]string),
		partitionCounts: make(map[engine.TopicID]int32), changed: make(map[string]bool), reading: newReading(),
	}
}

// becomeConsumersLocked switches a group to the consumer protocol. If the group has members they must be
// consumers, and the caller must have decoded them: otherwise it returns false.
func (g *group) becomeConsumersLocked(req *ConsumerRequest, u *upgrade) (bool, error) {
	if g.consumers != nil {
		return true, nil
	}
	if req.Epoch != epochJoin || len(g.members) > 0 && (g.protocolType != protocolConsumer || req.Classic == nil) {
		return false, ErrNotConsumerProtocol
	}
	if len(g.members) > 0 {
		if !u.isCurrentLocked(g) {
			return false, nil
		}
		g.upgradeLocked(u, req.Topics.Revision())
		return true, nil
	}
	g.clearPendingLocked()
	g.consumers = newConsumers(g)
	g.consumers.assignmentEpoch = g.number
	g.phase = empty
	return true, nil
}

// becomeClassicLocked switches an empty group to the classic protocol. It stores pending changes
// first, and releases the mutex during the write.
func (g *group) becomeClassicLocked() error {
	for g.consumers != nil {
		switch cs := g.consumers; {
		case len(cs.members) > 0:
			return ErrProtocol
		case cs.storedVersion == cs.version:
			g.consumers = nil
		default:
			if err := g.waitDurableLocked(); err != nil {
				return err
			}
		}
	}
	return nil
}

// occupiedLocked reports whether the group has members of either protocol.
func (g *group) occupiedLocked() bool {
	return len(g.members) > 0 || g.consumers != nil && len(g.consumers.members) > 0
}

// put adds a member, or replaces its state.
func (cs *consumers) put(m *consumer) {
	if old := cs.members[m.id]; old != nil {
		cs.countBytes(old, -1)
		cs.releasePartitions(old)
		if cs.static[old.instance] == old.id {
			delete(cs.static, old.instance)
		}
	}
	cs.members[m.id] = m
	cs.countBytes(m, 1)
	if m.instance != "" {
		cs.static[m.instance] = m.id
	}
	for _, held := range []map[Partition]int32{m.assigned, m.pendingRevocation} {
		for p := range held {
			cs.owners[p] = m.id
		}
	}
	cs.markChanged(m.id)
}

// remove removes a member.
func (cs *consumers) remove(m *consumer) {
	cs.countBytes(m, -1)
	cs.releasePartitions(m)
	delete(cs.members, m.id)
	if cs.static[m.instance] == m.id {
		delete(cs.static, m.instance)
	}
	cs.markChanged(m.id)
}

// releasePartitions frees the partitions that a member owns.
func (cs *consumers) releasePartitions(m *consumer) {
	for _, held := range []map[Partition]int32{m.assigned, m.pendingRevocation} {
		for p := range held {
			if cs.owners[p] == m.id {
				delete(cs.owners, p)
			}
		}
	}
}

// markChanged records a change that must be stored; id is the changed member, or "".
func (cs *consumers) markChanged(id string) {
	cs.version++
	if id != "" {
		cs.changed[id] = true
	}
}

// inOrder returns the members in the order of their ids.
func (cs *consumers) inOrder() []*consumer {
	return slices.SortedFunc(maps.Values(cs.members), func(a, b *consumer) int { return cmp.Compare(a.id, b.id) })
}

// consumersStateLocked returns Kafka's name of the group's state.
func (g *group) consumersStateLocked() string {
	cs := g.consumers
	switch {
	case len(cs.members) == 0:
		return "Empty"
	case g.number > cs.assignmentEpoch:
		return "Assigning"
	}
	for _, m := range cs.members {
		if m.stage != reconciled || m.epoch != cs.assignmentEpoch {
			return "Reconciling"
		}
	}
	return "Stable"
}

// unresolved reports whether the caller must resolve the topics of the member's subscription before
// the heartbeat can be handled, and returns that subscription.
func (cs *consumers) unresolved(req *ConsumerRequest, change *subscription, found *resolution) (subscription, bool) {
	if req.Epoch < epochJoin {
		return subscription{}, false
	}
	m := cs.members[req.MemberID]
	if id, ok := cs.static[req.InstanceID]; m == nil && ok {
		m = cs.members[id] // the member that it may replace
	}
	if m == nil {
		if req.Epoch != epochJoin {
			return subscription{}, false // the heartbeat will be rejected
		}
		m = &consumer{}
	}
	of := m.subscription
	if change != nil {
		of = req.merge(&m.subscription, change)
	}
	if found != nil && found.subscription.equal(&of) {
		return of, false
	}
	current := of.equal(&m.subscription) && m.revision == req.Topics.Revision() &&
		time.Since(m.resolved) < resolveInterval
	return of, !current
}

// expireConsumersLocked removes members whose session or revocation deadline has passed.
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
