package pebble

import (
	"fmt"
	"time"

	"freshet/internal/storage/engine"
)

// target is where a cursor is moved to.
type target struct {
	stay   bool // do not move it
	latest bool // after the last message that is durable when the cursor is moved
	floor  uint64
	acked  int64 // bytes ever written before floor
}

// resolveLocked returns the floor, and the bytes written before it. The caller holds
// committer.mu.
func (at target) resolveLocked(p *partition) (uint64, int64) {
	if at.latest {
		return p.durable.Load(), p.durableCum
	}
	return at.floor, at.acked
}

// resolveLocked returns the target of a position in every partition; other is the target
// of the partitions that a message id does not name. The caller holds topic.admin, so that
// nothing is trimmed meanwhile.
func (t *topic) resolveLocked(at engine.Position, other target) ([]target, error) {
	parts := *t.parts.Load()
	targets := make([]target, len(parts))
	var named *partition
	if at.Kind == engine.AtID || at.Kind == engine.AfterID {
		if at.ID.Topic != t.id {
			return nil, engine.ErrForeignID
		}
		var err error
		if named, err = t.partition(at.ID.Partition); err != nil {
			return nil, err
		}
	}
	for i, p := range parts {
		switch at.Kind {
		case engine.Latest:
			targets[i] = target{latest: true}
			continue
		case engine.Earliest:
			targets[i].floor = p.first.Load()
		case engine.AtID, engine.AfterID:
			if p != named {
				targets[i] = other
				continue
			}
			targets[i].floor = p.clamp(at)
		case engine.AtTime:
			var err error
			if targets[i].floor, err = p.firstAt(at.Time.UnixMilli()); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%w: position kind %d cannot be used here", engine.ErrInvalid, at.Kind)
		}
		var err error
		if targets[i].acked, err = p.cumBefore(targets[i].floor); err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// clamp converts an AtID or AfterID position into an entry between first and durable.
func (p *partition) clamp(at engine.Position) uint64 {
	entry := at.ID.Entry
	if at.Kind == engine.AfterID && entry < ^uint64(0) {
		entry++
	}
	return min(max(entry, p.first.Load()), p.durable.Load())
}

// seekLocked moves the cursors to a position and discards leases and acknowledgements. The
// caller holds topic.admin.
func (s *subscription) seekLocked(at engine.Position) (*commitBatch, error) {
	targets, err := s.topic.resolveLocked(at, target{stay: true})
	if err != nil {
		return nil, err
	}
	if err := s.lockLoaded(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	g, err := s.engine().commit.lockBatch()
	if err != nil {
		return nil, err
	}
	for i, c := range s.cursors {
		if !targets[i].stay {
			floor, acked := targets[i].resolveLocked(c.part)
			c.resetLocked(g, floor, acked)
		}
	}
	g.pinLocked(s.topic)
	s.topic.scheduleAfterAckLocked(g, time.Now().UnixMilli())
	s.engine().commit.unlockAndCommit()
	s.dispatchLocked(time.Now())
	return g, nil
}

// skipLocked settles the next n messages, oldest first. The caller holds topic.admin.
func (s *subscription) skipLocked(n uint64) (*commitBatch, error) {
	floors, err := s.walkOldestLocked(func(int64) bool {
		n--
		return n != ^uint64(0)
	})
	if err != nil {
		return nil, err
	}
	return s.raiseLocked(floors)
}

// skipBeforeLocked settles every message published before a time. The caller holds topic.admin.
func (s *subscription) skipBeforeLocked(millis int64) (*commitBatch, error) {
	parts := *s.topic.parts.Load()
	floors := make([]uint64, len(parts))
	for i, p := range parts {
		var err error
		if floors[i], err = p.firstAt(millis); err != nil {
			return nil, err
		}
	}
	return s.raiseLocked(floors)
}

// walkOldestLocked visits the unacknowledged messages, oldest first, until more returns false for
// the size of a message, and returns the floors after the messages before it. The caller
// holds topic.admin.
func (s *subscription) walkOldestLocked(more func(size int64) bool) ([]uint64, error) {
	t := s.topic
	parts := *t.parts.Load()
	floors := make([]uint64, len(parts))
	m, err := t.merge(parts, func(p *partition) (uint64, error) {
		if err := s.lockLoaded(); err != nil {
			return 0, err
		}
		defer s.mu.Unlock()
		return s.cursors[p.index].floor, nil
	})
	if err != nil {
		return nil, err
	}
	defer m.close()
	for {
		p, entry, ok := m.next()
		if !ok {
			return floors, m.err
		}
		if err := s.lockLoaded(); err != nil {
			return nil, err
		}
		acked := s.cursors[p.index].isAckedLocked(entry)
		s.mu.Unlock()
		if acked {
			continue
		}
		if !more(m.cur.head.size) {
			return floors, nil
		}
		floors[p.index] = entry + 1
	}
}

// raiseLocked moves cursors forward to floors, never backward, and keeps acknowledgements above
// them. It returns the last commit batch with a write of a cursor, nil when there was none.
// The caller holds topic.admin.
func (s *subscription) raiseLocked(floors []uint64) (*commitBatch, error) {
	if err := s.lockLoaded(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	e, now := s.engine(), time.Now()
	for i, floor := range floors {
		c := s.cursors[i]
		if floor <= c.floor {
			continue
		}
		acked, err := c.ackedAtLocked(floor)
		if err != nil {
			return nil, err
		}
		g, err := e.commit.lockBatch()
		if err != nil {
			return nil, err
		}
		c.moveToLocked(g, floor, acked)
		s.topic.scheduleAfterAckLocked(g, now.UnixMilli())
		e.commit.unlockAndCommit()
	}
	s.dispatchLocked(now)
	return s.changedIn, nil
}
