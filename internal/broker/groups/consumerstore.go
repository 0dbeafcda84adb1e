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
	epoch, previous                                     int32
	stage                                               stage
	has, loses                                          []grant
	target                                              []Partition
}

// grant is a partition and the epoch since which a member owns it.
type grant struct {
	Partition
	since int32
}

// storedConsumers is the stored header of a group with the consumer protocol.
type storedConsumers struct {
	assigned int32
	assignor string
}

// durableLocked returns once all changes made so far are in the journal. It releases the mutex
// during the write. One caller writes for all that wait. If the write fails, memory is ahead of the
// journal: the group is removed from memory, and the next call loads it again.
func (g *group) durableLocked() error {
	cs := g.consumers
	for want := cs.version; cs.stored < want; {
		switch {
		case cs.failed != nil:
			return cs.failed
		case g.gone:
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
	g.writes++
	g.mu.Unlock()
	<-ended
	g.mu.Lock()
	g.writes--
}

// writeConsumersLocked writes the changes since the last write.
func (g *group) writeConsumersLocked() {
	cs := g.consumers
	record, version := g.consumersRecordLocked(), cs.version
	clear(cs.changed)
	ended := make(chan struct{})
	cs.writing = ended
	err := g.writeLocked(func(*state) ([][]byte, error) { return [][]byte{record}, nil })
	cs.writing = nil
	close(ended)
	if err != nil {
		cs.failed, g.gone = err, true
		time.AfterFunc(rereadAfter, g.reread)
		return
	}
	cs.stored = version
}

// rereadAfter is the delay after which a group is loaded again after a failed write even without a
// call, because the sessions of its members must end.
const rereadAfter = 10 * time.Second

func (g *group) reread() {
	if again, err := g.shard.lock(g.key, false); err == nil {
		again.unlock()
	}
}

// consumersRecordLocked returns the record with the changes since the last write.
func (g *group) consumersRecordLocked() []byte {
	cs := g.consumers
	head := generation{number: g.number, consumers: &storedConsumers{assigned: cs.assigned, assignor: cs.assignor}}
	if len(cs.members) == 0 {
		head.emptySince = time.Now().UnixMilli()
	}
	var gone []string
	var put []*storedConsumer
	for id := range cs.changed {
		if m := cs.members[id]; m != nil {
			put = append(put, m.stored())
		} else {
			gone = append(gone, id)
		}
	}
	w := newRecord(recordConsumers, g.key)
	w.consumers(&head, gone, put)
	return w.b
}

// stored returns the stored form of a member.
func (m *consumer) stored() *storedConsumer {
	return &storedConsumer{
		id: m.id, instance: m.instance, client: m.client, host: m.host, rack: m.rack, assignor: m.assignor,
		pattern:         m.pattern,
		rebalanceMillis: m.rebalance.Milliseconds(), names: m.names, topics: m.topics,
		epoch: m.epoch, previous: m.previous, stage: m.stage,
		has: grants(m.has), loses: grants(m.loses), target: m.target,
	}
}

func grants(set map[Partition]int32) []grant {
	all := make([]grant, 0, len(set))
	for _, p := range sortedPartitions(set) {
		all = append(all, grant{p, set[p]})
	}
	return all
}

// restoreConsumersLocked restores a stored group. Its members have a full session timeout to send a
// heartbeat, and a full rebalance timeout to revoke partitions.
func (g *group) restoreConsumersLocked(stored *generation, members []*storedConsumer) {
	cs := newConsumers(&g.shard.c.bytes)
	g.consumers = cs
	g.number, cs.assigned, cs.assignor = stored.number, stored.consumers.assigned, stored.consumers.assignor
	now := time.Now()
	for _, s := range members {
		m := s.restored(now)
		cs.put(m)
		for _, p := range m.target {
			cs.counts[p.Topic]++ // every partition of a subscribed topic is in exactly one target
		}
	}
	cs.stored = cs.version
	clear(cs.changed)
	g.setTimerLocked()
}

func (s *storedConsumer) restored(now time.Time) *consumer {
	m := &consumer{
		id: s.id, instance: s.instance, client: s.client, host: s.host, rack: s.rack, assignor: s.assignor,
		rebalance: time.Duration(s.rebalanceMillis) * time.Millisecond, topics: s.topics,
		epoch: s.epoch, previous: s.previous, stage: s.stage, target: slices.Clone(s.target),
		has: make(map[Partition]int32), loses: make(map[Partition]int32), expires: now.Add(consumerSession),
	}
	m.names, m.pattern = s.names, s.pattern
	m.matcher, _ = compile(s.pattern) // only valid patterns are stored
	for _, g := range s.has {
		m.has[g.Partition] = g.since
	}
	for _, g := range s.loses {
		m.loses[g.Partition] = g.since
	}
	if m.stage == revoking {
		m.revokeBy = now.Add(m.rebalance)
	}
	return m
}
