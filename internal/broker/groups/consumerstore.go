package groups

import (
	"slices"
	"time"

	"freshet/internal/storage/engine"
)

// storedConsumer is the stored form of a member with the consumer protocol. It is immutable.
type storedConsumer struct {
	id, instance, client, host, rack, assignor, pattern string
	rebalanceMillis                                     int64
	names                                               []string
	topics                                              []engine.TopicID
	epoch, previousEpoch                                int32
	stage                                               stage
	assigned, pendingRevocation                         []ownedPartition
	target                                              []Partition
	classic                                             *classicMember // nil for a member with the consumer protocol
	owner                                               owner
}

// ownedPartition is a partition and the epoch since which a member owns it.
type ownedPartition struct {
	Partition
	since int32
}

// consumersHeader is the stored header of a group with the consumer protocol.
type consumersHeader struct {
	assignmentEpoch int32
	assignor        string
}

// waitDurableLocked returns once all changes made so far are in the journal. It releases the mutex
// during the write. One caller writes for all that wait. If the write fails, memory is ahead of the
// journal: the group is removed from memory, and the next call loads it again.
func (g *group) waitDurableLocked() error {
	cs := g.consumers
	for want := cs.version; cs.storedVersion < want; {
		switch {
		case cs.failed != nil:
			return cs.failed
		case g.removed:
			return ErrClosed
		case cs.writing != nil:
			g.awaitWriteLocked(cs.writing)
		default:
			g.writeConsumersLocked()
		}
	}
	return nil
}

// awaitWriteLocked releases the mutex until the write in progress ends.
func (g *group) awaitWriteLocked(ended <-chan struct{}) {
	g.writesInProgress++
	g.mu.Unlock()
	<-ended
	g.mu.Lock()
	g.writesInProgress--
}

// writeConsumersLocked writes the changes since the last write.
func (g *group) writeConsumersLocked() {
	cs := g.consumers
	record := g.consumersRecordLocked()
	version, payer := cs.version, g.payer
	clear(cs.changed)
	ended := make(chan struct{})
	cs.writing = ended
	err := g.writeLocked(func(s *state) ([][]byte, error) {
		return s.appendPayer([][]byte{record}, g.key, payer), nil
	})
	cs.writing = nil
	close(ended)
	if err != nil {
		cs.failed, g.removed = err, true
		g.releaseChargesLocked()
		time.AfterFunc(reloadDelay, g.reload)
		return
	}
	cs.storedVersion = version
}

// reloadDelay is the delay after which a group is loaded again after a failed write even without a
// call, because the sessions of its members must end.
const reloadDelay = 10 * time.Second

func (g *group) reload() {
	if again, err := g.shard.lock(g.key, false); err == nil {
		again.unlock()
	}
}

// consumersRecordLocked returns the record with the changes since the last write.
func (g *group) consumersRecordLocked() []byte {
	cs := g.consumers
	head := generation{
		number:    g.number,
		consumers: &consumersHeader{assignmentEpoch: cs.assignmentEpoch, assignor: cs.assignor},
	}
	if len(cs.members) == 0 {
		head.emptySince = time.Now().UnixMilli()
	}
	var gone []string
	var put []*storedConsumer
	for id := range cs.changed {
		if m := cs.members[id]; m != nil {
			put = append(put, m.toStored())
		} else {
			gone = append(gone, id)
		}
	}
	return consumersRecord(g.key, &head, gone, put).Writer
}

// toStored returns the stored form of a member.
func (m *consumer) toStored() *storedConsumer {
	return &storedConsumer{
		id: m.id, instance: m.instance, client: m.client, host: m.host, rack: m.rack, assignor: m.assignor,
		pattern:         m.pattern,
		rebalanceMillis: m.rebalanceTimeout.Milliseconds(), names: m.names, topics: m.topics,
		epoch: m.epoch, previousEpoch: m.previousEpoch, stage: m.stage,
		assigned: ownedPartitions(m.assigned), pendingRevocation: ownedPartitions(m.pendingRevocation),
		target: m.target, classic: m.classic, owner: m.owner,
	}
}

func ownedPartitions(set map[Partition]int32) []ownedPartition {
	all := make([]ownedPartition, 0, len(set))
	for _, p := range sortedPartitions(set) {
		all = append(all, ownedPartition{p, set[p]})
	}
	return all
}

// restoreConsumersLocked restores a stored group. Its members have a full session timeout to send a
// heartbeat, and a full rebalance timeout to revoke partitions.
func (g *group) restoreConsumersLocked(stored *generation, members []*storedConsumer) {
	cs := newConsumers(g)
	g.consumers = cs
	g.number, cs.assignmentEpoch, cs.assignor = stored.number, stored.consumers.assignmentEpoch,
		stored.consumers.assignor
	now := time.Now()
	for _, s := range members {
		m := s.toConsumer(now)
		cs.put(m)
		for _, p := range m.target {
			cs.partitionCounts[p.Topic]++ // every partition of a subscribed topic is in exactly one target
		}
	}
	cs.storedVersion = cs.version
	clear(cs.changed)
	g.setTimerLocked()
}

func (s *storedConsumer) toConsumer(now time.Time) *consumer {
	m := &consumer{
		id: s.id, instance: s.instance, client: s.client, host: s.host, rack: s.rack, assignor: s.assignor,
		rebalanceTimeout: time.Duration(s.rebalanceMillis) * time.Millisecond, topics: s.topics,
		epoch: s.epoch, previousEpoch: s.previousEpoch, stage: s.stage, target: slices.Clone(s.target),
		assigned: make(map[Partition]int32), pendingRevocation: make(map[Partition]int32),
		classic: s.classic, owner: s.owner,
	}
	if m.owner.principal == "" {
		m.owner = owner{names: s.names, ids: s.topics}
	}
	m.expires = now.Add(m.sessionTimeout())
	m.names, m.pattern = s.names, s.pattern
	m.matcher, _ = compile(s.pattern) // only valid patterns are stored
	for _, g := range s.assigned {
		m.assigned[g.Partition] = g.since
	}
	for _, g := range s.pendingRevocation {
		m.pendingRevocation[g.Partition] = g.since
	}
	if m.stage == revoking {
		m.revokeBy = now.Add(m.rebalanceTimeout)
	}
	return m
}
