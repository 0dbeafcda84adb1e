package pebble

import (
	"context"
	"errors"
	"fmt"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/engine"
)

// Settle implements engine.Subscriptions.
func (e *Engine) Settle(ctx context.Context, id engine.TopicID, name string, settlements []engine.Settlement) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	t, err := e.topics.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer t.release()
	s, err := t.subscription(ctx, name)
	if err != nil {
		return err
	}
	if err := t.knows(settlements); err != nil {
		return err
	}
	var sizes map[place]int64 // of messages whose lease did not say
	for {
		if err := s.use(); err != nil {
			return err
		}
		missing := s.unsized(settlements, sizes)
		if missing == nil {
			break
		}
		s.mu.Unlock()
		if sizes == nil {
			sizes = make(map[place]int64)
		}
		for _, at := range missing {
			if sizes[at], err = at.part.size(at.entry); err != nil {
				return err
			}
		}
	}
	g, err := s.settle(settlements, sizes)
	s.mu.Unlock()
	if err != nil || g == nil {
		return err
	}
	return g.wait(ctx)
}

// place is an entry of a partition.
type place struct {
	part  *partition
	entry uint64
}

// knows checks that the topic has, or had, every message named.
func (t *topic) knows(settlements []engine.Settlement) error {
	for i := range settlements {
		id := settlements[i].ID
		if id.Topic != t.id {
			return engine.ErrForeignID
		}
		p, err := t.partition(id.Partition)
		if err != nil {
			return err
		}
		if id.Entry >= p.durable.Load() {
			return engine.ErrNoMessage
		}
		if settlements[i].Action > engine.Extend {
			return fmt.Errorf("%w: unknown action %d", engine.ErrInvalid, settlements[i].Action)
		}
	}
	return nil
}

// unsized lists the messages to acknowledge whose size nobody knows yet.
func (s *subscription) unsized(settlements []engine.Settlement, sizes map[place]int64) (missing []place) {
	for i := range settlements {
		if settlements[i].Action != engine.Ack {
			continue
		}
		id := settlements[i].ID
		c := s.cursors[id.Partition]
		if it := c.items[id.Entry]; it != nil && it.size.Load() > 0 || c.isAcked(id.Entry) {
			continue
		}
		at := place{c.part, id.Entry}
		if _, ok := sizes[at]; !ok {
			missing = append(missing, at)
		}
	}
	return missing
}

// settle applies the settlements and returns the group to wait for, nil when
// there is nothing to wait for. The caller holds s.mu.
func (s *subscription) settle(settlements []engine.Settlement, sizes map[place]int64) (*group, error) {
	wall := time.Now()
	now := s.engine().instant(wall)
	s.expire(now)
	defer s.dispatch(wall)
	durable := false
	for i := range settlements {
		st := &settlements[i]
		c := s.cursors[st.ID.Partition]
		if st.Action == engine.Extend {
			s.extend(c.items[st.ID.Entry], now, st.Delay)
			continue
		}
		floor, acked := st.ID.Entry+1, int64(0)
		if st.Action == engine.AckTo && floor > c.floor {
			var err error
			if acked, err = c.ackedAt(floor); err != nil {
				return nil, err
			}
		}
		g, err := s.engine().commit.enter()
		if err != nil {
			return nil, err
		}
		switch st.Action {
		case engine.Ack:
			s.ackOne(g, c, st.ID.Entry, sizes)
		case engine.AckTo:
			c.moveTo(g, floor, acked)
		case engine.Nack:
			s.nack(g, c.items[st.ID.Entry], now, st.Delay)
		}
		if st.Action != engine.Nack {
			durable = true
			s.topic.settled(g, wall.UnixMilli())
		}
		s.engine().commit.leave()
	}
	if durable {
		return s.changed, nil
	}
	return nil, nil
}

func (s *subscription) ackOne(g *group, c *cursor, entry uint64, sizes map[place]int64) {
	if c.isAcked(entry) {
		return
	}
	size, ok := sizes[place{c.part, entry}]
	if !ok {
		if it := c.items[entry]; it != nil {
			size = it.size.Load()
		}
	}
	c.ack(g, entry, size)
}

// ackedAt returns the bytes ever acknowledged once everything below floor is.
func (c *cursor) ackedAt(floor uint64) (int64, error) {
	acked, err := c.part.cumBefore(floor)
	if err != nil || c.above == 0 {
		return acked, err
	}
	for n, b := range c.blocks {
		start := n * blockEntries
		if start >= floor {
			acked += b.bytes
			continue
		}
		for entry := floor; entry < start+blockEntries; entry++ {
			if b.has(entry) {
				size, err := c.part.size(entry)
				if err != nil {
					return 0, err
				}
				acked += size
			}
		}
	}
	return acked, nil
}

func (s *subscription) nack(g *group, it *item, now instant, delay time.Duration) {
	if it == nil || it.state == itemDead {
		return
	}
	switch {
	case it.state == itemLeased:
		s.drop(it)
		s.returned(g, it, now, delay)
	case it.deliveries > 0 && delay > 0:
		s.drop(it)
		s.suspend(it, now+instant(delay))
	}
}

// extend keeps an item for its consumer. When the lease has ended but nobody
// else has the message yet, the consumer gets it back.
func (s *subscription) extend(it *item, now instant, d time.Duration) {
	if it == nil || it.deliveries == 0 || it.state != itemLeased && it.state != itemReady {
		return
	}
	if d <= 0 {
		d = s.config.Lease
	}
	if d <= 0 {
		d = engine.DefaultLease
	}
	s.drop(it)
	s.lease(it, now+instant(d))
}

// size returns the stored bytes of an entry; 0 when it is trimmed already.
func (p *partition) size(entry uint64) (int64, error) {
	head, err := p.head(entry)
	switch {
	case errors.Is(err, cdb.ErrNotFound):
		return 0, nil
	case errors.Is(err, engine.ErrCorrupt):
		return head.size, nil // a damaged message can still be acknowledged
	}
	return head.size, err
}
