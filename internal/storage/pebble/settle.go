package pebble

import (
	"context"
	"errors"
	"fmt"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// Settle implements engine.Subscriptions.
func (e *Engine) Settle(ctx context.Context, id engine.TopicID, name string, settlements []engine.Settlement) error {
	s, err := e.beginSubscription(ctx, id, name)
	if err != nil {
		return err
	}
	defer s.topic.end()
	if err := s.topic.checkIDs(settlements); err != nil {
		return err
	}
	var sizes map[entryRef]int64 // of messages whose item has no size
	for {
		if err := s.lockLoaded(); err != nil {
			return err
		}
		missing := s.unsizedLocked(settlements, sizes)
		if missing == nil {
			break
		}
		s.mu.Unlock()
		if sizes == nil {
			sizes = make(map[entryRef]int64)
		}
		for _, at := range missing {
			if sizes[at], err = at.part.size(at.entry); err != nil {
				return err
			}
		}
	}
	g, rejected, err := s.settleLocked(settlements, sizes)
	s.mu.Unlock()
	if len(rejected) > 0 {
		g, err = e.deadLetters.moveRejected(s, rejected)
	}
	if err != nil || g == nil {
		return err
	}
	if err := g.wait(ctx); err != nil {
		return err
	}
	e.damage.countSkipped(settlements)
	return nil
}

// entryRef identifies an entry of a partition.
type entryRef struct {
	part  *partition
	entry uint64
}

// checkIDs returns an error when the topic never had one of the messages.
func (t *topic) checkIDs(settlements []engine.Settlement) error {
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
		if settlements[i].Action > engine.Return {
			return fmt.Errorf("%w: unknown action %d", engine.ErrInvalid, settlements[i].Action)
		}
	}
	return nil
}

// unsizedLocked lists the messages to acknowledge whose size is not known yet. The caller
// holds s.mu.
func (s *subscription) unsizedLocked(settlements []engine.Settlement, sizes map[entryRef]int64) (missing []entryRef) {
	for i := range settlements {
		switch settlements[i].Action {
		case engine.Ack, engine.Accept, engine.Reject:
		default:
			continue
		}
		id := settlements[i].ID
		c := s.cursors[id.Partition]
		if it := c.items[id.Entry]; it != nil && it.size.Load() > 0 || c.isAckedLocked(id.Entry) {
			continue
		}
		at := entryRef{c.part, id.Entry}
		if _, ok := sizes[at]; !ok {
			missing = append(missing, at)
		}
	}
	return missing
}

// settleLocked applies the settlements and returns the commit batch to wait for, or nil
// when nothing has to become durable. The caller moves the rejected items to the dead letter
// topic. The caller holds s.mu.
func (s *subscription) settleLocked(settlements []engine.Settlement, sizes map[entryRef]int64) (
	_ *commitBatch, rejected []*item, _ error,
) {
	wall := time.Now()
	now := s.engine().instant(wall)
	s.expireLocked(now)
	defer s.dispatchLocked(wall)
	for i := range settlements {
		if err := s.checkLeaseLocked(&settlements[i]); err != nil {
			return nil, nil, err
		}
	}
	durable := false
	for i := range settlements {
		st := &settlements[i]
		c := s.cursors[st.ID.Partition]
		if st.Action == engine.Extend {
			s.extendLocked(c.items[st.ID.Entry], st, now)
			continue
		}
		if st.Action == engine.Reject && s.config.MaxDeliveries > 0 {
			if it := c.items[st.ID.Entry]; it.holdsLocked(st) { // otherwise settled by the same call
				s.rejectLocked(it)
				rejected = append(rejected, it)
			}
			continue
		}
		floor, acked := st.ID.Entry+1, int64(0)
		if st.Action == engine.AckTo && floor > c.floor {
			var err error
			if acked, err = c.ackedAtLocked(floor); err != nil {
				return nil, nil, err
			}
		}
		g, err := s.engine().commit.lockBatch()
		if err != nil {
			return nil, nil, err
		}
		switch st.Action {
		case engine.Ack, engine.Accept, engine.Reject:
			s.ackOneLocked(g, c, st.ID.Entry, sizes)
		case engine.AckTo:
			c.moveToLocked(g, floor, acked)
		case engine.Nack, engine.Release:
			s.nackLocked(g, c.items[st.ID.Entry], st, now)
		case engine.Return:
			s.returnLocked(c.items[st.ID.Entry], st)
		}
		if acknowledges(st.Action) {
			durable = true
			s.topic.scheduleAfterAckLocked(g, wall.UnixMilli())
		}
		s.engine().commit.unlockAndCommit()
	}
	if durable {
		return s.changedIn, rejected, nil
	}
	return nil, rejected, nil
}

func (s *subscription) ackOneLocked(g *commitBatch, c *cursor, entry uint64, sizes map[entryRef]int64) {
	if c.isAckedLocked(entry) {
		return
	}
	size, ok := sizes[entryRef{c.part, entry}]
	if !ok {
		if it := c.items[entry]; it != nil {
			size = it.size.Load()
		}
	}
	c.ackLocked(g, entry, size)
}

// ackedAtLocked returns the bytes that are acknowledged once everything below floor is.
func (c *cursor) ackedAtLocked(floor uint64) (int64, error) {
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

// holdsLocked reports whether the lease that a settlement identifies is the item's
// current lease. The caller holds subscription.mu.
func (it *item) holdsLocked(st *engine.Settlement) bool {
	return it != nil && it.state == itemLeased && (st.Delivery == it.deliveries || st.Delivery == 0 && !it.expired)
}

// checkLeaseLocked returns an error for an action that needs a lease, of a message that is not
// leased to the caller. The caller holds s.mu.
func (s *subscription) checkLeaseLocked(st *engine.Settlement) error {
	switch st.Action {
	case engine.Nack, engine.Extend, engine.Accept, engine.Reject:
	default:
		return nil
	}
	it := s.cursors[st.ID.Partition].items[st.ID.Entry]
	switch {
	case it.holdsLocked(st):
		return nil
	case it != nil && it.state == itemLeased && st.Delivery == 0:
		return fmt.Errorf("%w; an earlier lease expired and the id has no delivery number: send the id that came with "+
			"the message", engine.ErrLeaseEnded)
	}
	return engine.ErrLeaseEnded
}

func (s *subscription) nackLocked(g *commitBatch, it *item, st *engine.Settlement, now instant) {
	if !it.holdsLocked(st) {
		return
	}
	delay := st.Delay
	if st.Action == engine.Release {
		delay = 0
	}
	s.dropLocked(it)
	s.returnedLocked(g, it, now, delay)
}

// acknowledges reports whether an action acknowledges messages in the commit batch of its call.
func acknowledges(a engine.Action) bool {
	return a == engine.Ack || a == engine.AckTo || a == engine.Accept || a == engine.Reject
}

// returnLocked ends a lease whose message never reached a consumer, without counting a
// delivery. The caller holds s.mu.
func (s *subscription) returnLocked(it *item, st *engine.Settlement) {
	if it.holdsLocked(st) {
		s.uncountLocked(it)
	}
}

// extendLocked extends the lease of an item. The caller holds s.mu.
func (s *subscription) extendLocked(it *item, st *engine.Settlement, now instant) {
	if !it.holdsLocked(st) {
		return // released or acknowledged by a settlement of the same call
	}
	d := st.Delay
	if d <= 0 {
		d = s.config.Lease
	}
	if d <= 0 {
		d = engine.DefaultLease
	}
	s.dropLocked(it)
	s.leaseLocked(it, now+instant(d))
}

// size returns the stored bytes of an entry, 0 when it is trimmed.
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
