package pebble

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"freshet/internal/storage/engine"
)

// subscription is a loaded subscription. mu protects the fields below it. Its methods
// whose names end in Locked, and those of its cursors, are called with mu held, unless
// their comments name another lock.
type subscription struct {
	topic     *topic
	id        uint32
	name      string
	createdBy *commitBatch // the commit batch that created it; nil when it was loaded

	acked atomic.Int64 // bytes ever acknowledged, summed over all cursors

	mu            sync.Mutex
	config        engine.SubscriptionConfig
	cursors       []*cursor
	acksLoaded    bool         // blocks and counts were read from the store
	unusable      error        // the error for callers after it was deleted or unloaded
	changedIn     *commitBatch // the last commit batch with a write of a cursor
	timers        itemHeap     // leased and waiting items, by time
	leased        int
	deadLetters   int // items that are being moved to the dead letter topic
	delayed       int // waiting items that were never delivered
	counts        deliveryCounts
	nextPartition int // partition that the next call of Receive starts with
	waiters       waiterList

	armed atomic.Int64 // instant at which the clock wakes it, 0 for never; changed under clock.mu
	index int          // in the clock's heap; protected by clock.mu
}

// deliveryCounts are the counts of a subscription since the engine was opened.
type deliveryCounts struct {
	redelivered uint64
	filtered    engine.FilterCounts
}

func (s *subscription) engine() *Engine { return s.topic.e }

// restoreCursor restores one stored cursor.
func (s *subscription) restoreCursor(key []byte, part uint32, body []byte) error {
	if int64(part) >= int64(len(s.cursors)) || len(body) != cursorLen {
		return corrupt(key, fmt.Sprintf(
			"cursor of subscription %q has %d bytes and is for partition %d; want %d bytes and one of %d partitions",
			s.name, len(body), part, cursorLen, len(s.cursors)))
	}
	c := s.cursors[part]
	if floor := binary.LittleEndian.Uint64(body); floor >= c.floor {
		c.floor, c.next = floor, floor
		c.acked = int64(binary.LittleEndian.Uint64(body[8:]))
	}
	return nil
}

// restored computes the sum of the restored cursors.
func (s *subscription) restored() {
	var acked int64
	for _, c := range s.cursors {
		acked += c.acked
	}
	s.acked.Store(acked)
}

func (tt *topicTable) countsOf(id engine.TopicID, sub uint32) deliveryCounts {
	tt.mu.RLock()
	defer tt.mu.RUnlock()
	return tt.counts[countsKey{id, sub}]
}

// newSubscription returns a subscription whose cursors are at the start of their
// partitions.
func (t *topic) newSubscription(id uint32, name string, config engine.SubscriptionConfig,
	parts []*partition,
) *subscription {
	s := &subscription{topic: t, id: id, name: name, config: config, index: -1}
	for _, p := range parts {
		s.addCursorLocked(p)
	}
	return s
}

func (s *subscription) addCursorLocked(p *partition) {
	c := &cursor{sub: s, part: p, floor: p.first.Load(), acked: p.firstCum.Load()}
	c.next = c.floor
	s.cursors = append(s.cursors, c)
}

// lockLoaded locks s.mu and loads the acknowledgements if necessary. When it returns nil,
// the caller unlocks s.mu.
func (s *subscription) lockLoaded() error {
	s.mu.Lock()
	if s.unusable != nil {
		s.mu.Unlock()
		return s.unusable
	}
	if !s.acksLoaded {
		if err := s.loadAcksLocked(); err != nil {
			s.mu.Unlock()
			return fmt.Errorf("loading subscription %q of topic %d: %w", s.name, s.topic.id, err)
		}
		s.acksLoaded = true
	}
	return nil
}

func (s *subscription) loadAcksLocked() error {
	t := s.topic
	for _, c := range s.cursors {
		c.blocks, c.counts, c.above = nil, nil, 0
	}
	prefix := ownedKey(ofAcks, t.id, s.id)
	err := t.e.scan(prefix, func(key, body []byte) error {
		part := binary.BigEndian.Uint32(key[kindLen+4:])
		if int(part) >= len(s.cursors) {
			return nil
		}
		return s.cursors[part].restoreBlockLocked(key, body)
	})
	if err != nil {
		return err
	}
	return t.e.scan(ownedKey(ofCount, t.id, s.id), func(key, body []byte) error {
		part, entry := binary.BigEndian.Uint32(key[kindLen+4:]), binary.BigEndian.Uint64(key[cursorKeyLen:])
		if int(part) >= len(s.cursors) || s.cursors[part].isAckedLocked(entry) {
			return nil
		}
		u := unpack(body)
		c := s.cursors[part]
		if c.counts == nil {
			c.counts = make(map[uint64]uint32)
		}
		c.counts[entry] = uint32(u.Uvarint())
		return u.Err()
	})
}

// dropLocked removes an item from its heap.
func (s *subscription) dropLocked(it *item) {
	switch it.state {
	case itemLeased:
		s.timers.remove(it, byTime)
		s.leased--
	case itemWaiting:
		s.timers.remove(it, byTime)
		if it.deliveries == 0 {
			s.delayed--
		}
	case itemReady:
		it.cur.ready.remove(it, byEntry)
	case itemDeadLetter:
		s.deadLetters--
	}
	it.state = itemDetached
}

// leaseLocked leases a detached item until at.
func (s *subscription) leaseLocked(it *item, at instant) {
	it.state, it.at = itemLeased, at
	s.timers.push(it, byTime)
	s.leased++
}

// suspendLocked delays a detached item until at.
func (s *subscription) suspendLocked(it *item, at instant) {
	it.state, it.at = itemWaiting, at
	s.timers.push(it, byTime)
	if it.deliveries == 0 {
		s.delayed++
	}
}

// makeReadyLocked makes a detached item available for the next caller.
func (s *subscription) makeReadyLocked(it *item) {
	it.state = itemReady
	it.cur.ready.push(it, byEntry)
}

// busy reports whether unloading would lose a lease, the delay of a negative
// acknowledgement, a dead letter or a waiting caller.
func (s *subscription) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiters.n > 0 || s.deadLetters > 0 || len(s.timers) > s.delayed
}

// unload makes the subscription unusable and returns its counts.
func (s *subscription) unload() deliveryCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unusable = engine.ErrNoSubscription
	s.engine().clock.disarm(s)
	return s.counts
}

// retireLocked ends the subscription: waiting callers get err, and its writes are removed
// from the commit batch. The caller holds s.mu and committer.mu.
func (s *subscription) retireLocked(g *commitBatch, err error) {
	s.unusable = err
	for _, c := range s.cursors {
		c.cancelWritesLocked(g)
	}
	for w := s.waiters.first; w != nil; w = s.waiters.first {
		s.dequeueLocked(w)
		w.err = err
		w.wake()
	}
	s.timers, s.leased, s.delayed, s.deadLetters = nil, 0, 0, 0
	for _, c := range s.cursors {
		for _, it := range c.items {
			it.state = itemDetached // a caller that still has the lease cannot release it any more
		}
		c.items, c.ready = nil, nil
	}
}
