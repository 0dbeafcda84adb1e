package groups

import (
	"slices"
	"time"

	"freshet/internal/storage/engine"
)

// storedConsumer is a member of the consumer protocol as it is stored. It is never
// changed, only replaced.
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

// grant is a partition and the epoch since which a member has it.
type grant struct {
	Partition
	since int32
}

// storedConsumers is the heads of a group of the consumer protocol as it is stored.
type storedConsumers struct {
	assigned int32
	assignor string
}

// durableLocked returns once everything that was changed so far is in the journal.
// It lets the mutex go meanwhile. One caller writes for all that wait; when that
// fails, memory is ahead of the journal, so the group is given up and the next
// call reads it anew.
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

// awaitWriteLocked lets the mutex go until the write under way has ended.
func (g *group) awaitWriteLocked(ended <-chan struct{}) {
	g.writes++
	g.mu.Unlock()
	<-ended
	g.mu.Lock()
	g.writes--
}

// writeConsumersLocked writes what has changed since the last write.
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

// rereadAfter is when a group that was given up is read anew if nobody asks for it:
// its members' sessions must end some time.
const rereadAfter = 10 * time.Second

func (g *group) reread() {
	if again, err := g.shard.lock(g.key, false); err == nil {
		again.unlock()
	}
}

// consumersRecordLocked is the record of what has changed.
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

// stored returns a member as it is stored.
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

// restoreConsumersLocked makes the group what it was when it was stored. Its
// members have a whole session to be heard of, and those that have to let
// partitions go their whole time for it.
func (g *group) restoreConsumersLocked(stored *generation, members []*storedConsumer) {
	cs := newConsumers(&g.shard.c.bytes)
	g.consumers = cs
	g.number, cs.assigned, cs.assignor = stored.number, stored.consumers.assigned, stored.consumers.assignor
	now := time.Now()
	for _, s := range members {
		m := s.restored(now)
		cs.put(m)
		for _, p := range m.target {
			cs.counts[p.Topic]++ // every partition of a subscribed topic is in one target
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
	m.matcher, _ = compile(s.pattern) // it was compiled before it was stored
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
