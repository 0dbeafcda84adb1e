package pebble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/unpacking"
	"freshet/internal/storage/engine"
)

// maxReceive limits how many messages one Receive leases.
const maxReceive = 10_000

// waiter is a call of Receive that waits for messages.
type waiter struct {
	max        int
	lease      time.Duration
	partition  int32
	got        leaseBatch
	err        error
	ready      chan struct{}
	queued     bool
	prev, next *waiter
}

// leaseBatch is the set of leases of one call of Receive, as of the time when they were
// made. The items belong to the subscription and may change afterwards.
type leaseBatch struct {
	at     instant // when the leases expire
	until  time.Time
	filter string // of the subscription
	leases []leased
}

type leased struct {
	*item
	deliveries uint32
}

func (w *waiter) wake() { w.ready <- struct{}{} } // never blocks: capacity 1, and woken only once

// waiterList is a FIFO queue of waiters.
type waiterList struct {
	first, last *waiter
	n           int
}

func (s *subscription) enqueueLocked(w *waiter) {
	l := &s.waiters
	w.queued, w.prev = true, l.last
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
	if l.n++; l.n == 1 {
		t := s.topic
		t.waitMu.Lock()
		if t.waiting == nil {
			t.waiting = make(map[*subscription]struct{})
		}
		t.waiting[s] = struct{}{}
		t.waitMu.Unlock()
	}
}

func (s *subscription) dequeueLocked(w *waiter) {
	l := &s.waiters
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.queued, w.prev, w.next = false, nil, nil
	if l.n--; l.n == 0 {
		s.topic.waitMu.Lock()
		delete(s.topic.waiting, s)
		s.topic.waitMu.Unlock()
	}
}

// Receive implements engine.Subscriptions.
func (e *Engine) Receive(ctx context.Context, id engine.TopicID, name string,
	req engine.ReceiveRequest,
) ([]engine.Delivery, error) {
	s, err := e.beginSubscription(ctx, id, name)
	if err != nil {
		return nil, err
	}
	defer s.topic.end()
	if req.Max < 1 {
		return nil, fmt.Errorf("%w: receive at least one message", engine.ErrInvalid)
	}
	if req.Partition != engine.AllPartitions {
		if _, err := s.topic.partition(req.Partition); err != nil {
			return nil, err
		}
	}
	var deadline time.Time
	if req.Wait > 0 {
		deadline = time.Now().Add(req.Wait)
	}
	for {
		got, err := s.take(ctx, req, deadline)
		if err != nil || len(got.leases) == 0 {
			return nil, err
		}
		if got.filter != "" {
			return s.receiveSelected(ctx, got, req, deadline)
		}
		out, err := s.fetch(ctx, got, req)
		if err != nil {
			return nil, err
		}
		if len(out) == 0 { // all of them were trimmed meanwhile; try again
			continue
		}
		err = ctx.Err()
		if err == nil {
			err = e.live()
		}
		if err != nil {
			s.returnLeases(got)
			return nil, err
		}
		return out, nil
	}
}

// take leases entries to the caller, and waits for the first one until deadline.
func (s *subscription) take(ctx context.Context, req engine.ReceiveRequest, deadline time.Time) (leaseBatch, error) {
	if err := s.lockLoaded(); err != nil {
		return leaseBatch{}, err
	}
	if err := ctx.Err(); err != nil {
		s.mu.Unlock()
		return leaseBatch{}, err
	}
	now := time.Now()
	s.dispatchLocked(now) // waiting callers are served first
	w := waiter{max: min(req.Max, maxReceive), partition: req.Partition, lease: s.leaseOfLocked(req.Lease)}
	s.fillLocked(&w, now)
	if len(w.got.leases) > 0 {
		s.armLocked()
		s.mu.Unlock()
		return w.got, nil
	}
	wait := time.Until(deadline)
	if deadline.IsZero() || wait <= 0 {
		s.mu.Unlock()
		return leaseBatch{}, nil
	}
	w.ready = make(chan struct{}, 1)
	s.enqueueLocked(&w)
	s.armLocked()
	s.mu.Unlock()
	return s.await(ctx, &w, wait)
}

// leaseOfLocked returns the lease for a request, which is 0 for that of the subscription.
func (s *subscription) leaseOfLocked(requested time.Duration) time.Duration {
	switch {
	case requested > 0:
		return requested
	case s.config.Lease > 0:
		return s.config.Lease
	}
	return engine.DefaultLease
}

// await blocks until the waiter is served, its wait ends, or the call is cancelled.
func (s *subscription) await(ctx context.Context, w *waiter, wait time.Duration) (leaseBatch, error) {
	e := s.engine()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var cause error
	select {
	case <-w.ready:
		return w.got, w.err
	case <-timer.C:
	case <-ctx.Done():
		cause = ctx.Err()
	case <-e.closing:
		cause = e.closedCause()
	case <-e.stopped:
		cause = e.stopCause()
	}
	s.mu.Lock()
	if w.queued {
		s.dequeueLocked(w)
		s.mu.Unlock()
		return leaseBatch{}, cause
	}
	s.mu.Unlock()
	if cause != nil { // served at the same moment: release the leases for other callers
		s.returnLeases(w.got)
		return leaseBatch{}, cause
	}
	return w.got, w.err
}

// returnLeases releases leases of messages that never reached their caller, without
// counting a delivery.
func (s *subscription) returnLeases(got leaseBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returnLeasesLocked(got)
	s.dispatchLocked(time.Now())
}

// returnLeasesLocked is returnLeases for a caller that holds s.mu and serves the waiting callers.
func (s *subscription) returnLeasesLocked(got leaseBatch) {
	for _, l := range got.leases {
		it := l.item
		if !l.heldLocked(got.at) {
			continue // the lease is no longer this caller's
		}
		s.uncountLocked(it)
	}
}

// heldLocked reports whether the lease that was made until at is still the item's lease.
func (l leased) heldLocked(at instant) bool { return l.state == itemLeased && l.item.at == at }

// uncountLocked makes a leased item ready again, as if it had not been leased. The caller
// holds s.mu.
func (s *subscription) uncountLocked(it *item) {
	s.dropLocked(it)
	if it.deliveries > 1 {
		s.counts.redelivered--
	}
	it.deliveries--
	s.makeReadyLocked(it)
}

// dispatchLocked serves waiting callers in the order of their arrival. It must be called
// whenever messages may have become available. The caller holds s.mu.
func (s *subscription) dispatchLocked(now time.Time) {
	if s.unusable != nil || !s.acksLoaded {
		return
	}
	s.expireLocked(s.engine().instant(now))
	for w := s.waiters.first; w != nil; {
		next := w.next
		s.fillLocked(w, now)
		if len(w.got.leases) > 0 {
			s.dequeueLocked(w)
			w.wake()
		} else if w.partition == engine.AllPartitions {
			break // no message is available for any caller
		}
		w = next
	}
	s.armLocked()
}

// fillLocked leases up to w.max entries to w, from one partition after the other. The
// caller holds s.mu.
func (s *subscription) fillLocked(w *waiter, now time.Time) {
	limit := s.topic.config.Load().MaxUnacked
	lo, n := s.nextPartition, len(s.cursors)
	if w.partition != engine.AllPartitions {
		if int(w.partition) >= n {
			return
		}
		lo, n = int(w.partition), 1
	}
	lease := w.lease
	if w.got.filter = s.config.Filter; w.got.filter != "" {
		lease = selectLease // of the messages that are selected, it is set afterwards
	}
	w.got.at = s.engine().instant(now) + instant(lease)
	w.got.until = now.Add(lease)
	for i := 0; i < n; i++ {
		c := s.cursors[(lo+i)%len(s.cursors)]
		for len(w.got.leases) < w.max && (limit <= 0 || s.leased < limit) {
			it := c.takeLocked(now)
			if it == nil {
				break
			}
			if it.deliveries++; it.deliveries > 1 {
				s.counts.redelivered++
			}
			s.leaseLocked(it, w.got.at)
			w.got.leases = append(w.got.leases, leased{it, it.deliveries})
		}
		if len(w.got.leases) >= w.max {
			break
		}
	}
	if w.partition == engine.AllPartitions {
		s.nextPartition = (s.nextPartition + 1) % len(s.cursors)
	}
}

// takeLocked returns the next entry to deliver as a detached item, or nil.
func (c *cursor) takeLocked(now time.Time) *item {
	if len(c.ready) > 0 {
		it := c.ready[0]
		c.sub.dropLocked(it)
		return it
	}
	durable := c.part.durable.Load()
	for c.next = max(c.next, c.floor); c.next < durable; {
		entry := c.next
		if b := c.blocks[entry/blockEntries]; b != nil {
			if clear := b.nextClear(entry); clear != entry {
				c.next = clear
				continue
			}
		}
		c.next++
		it := &item{cur: c, entry: entry, deliveries: c.counts[entry]}
		if c.items == nil {
			c.items = make(map[uint64]*item)
		}
		c.items[entry] = it
		if due := c.part.delayedUntil(entry, now.UnixMilli()); due > 0 {
			at := c.sub.engine().instant(now) + instant(time.UnixMilli(due).Sub(now))
			c.sub.suspendLocked(it, at)
			continue
		}
		return it
	}
	return nil
}

// fetch reads the records of leased items. Damaged ones stay leased and are tried again
// when the lease expires; only when there are no others does fetch return their error.
func (s *subscription) fetch(ctx context.Context, got leaseBatch,
	req engine.ReceiveRequest,
) ([]engine.Delivery, error) {
	r := reader{e: s.engine()}
	defer r.close()
	if len(got.leases) >= iterateFrom {
		if err := r.iterate(); err != nil {
			s.returnLeases(got)
			return nil, err
		}
	}
	out := make([]engine.Delivery, 0, len(got.leases))
	var damage error
	total := 0
	for i, l := range got.leases {
		record, size, err := r.read(ctx, l.cur.part, l.entry)
		switch {
		case errors.Is(err, cdb.ErrNotFound):
			s.forgetTrimmed(l.item)
			continue
		case errors.Is(err, engine.ErrCorrupt):
			damage = cmp.Or(damage, err)
			continue
		case errors.Is(err, unpacking.ErrBusy) && len(out) > 0:
			s.returnLeases(leaseBatch{at: got.at, leases: got.leases[i:]})
			return out, nil
		case err != nil:
			s.returnLeases(got)
			return nil, err
		}
		l.size.Store(size)
		if total += record.Weight(); req.MaxBytes > 0 && total > req.MaxBytes && len(out) > 0 {
			s.returnLeases(leaseBatch{at: got.at, leases: got.leases[i:]})
			break
		}
		out = append(out, engine.Delivery{
			Record:       record,
			Redeliveries: l.deliveries - 1,
			LeasedUntil:  got.until,
		})
	}
	if len(out) == 0 && damage != nil {
		return nil, damage
	}
	return out, nil
}

// forgetTrimmed discards an item whose message was trimmed.
func (s *subscription) forgetTrimmed(it *item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it.state == itemLeased || it.state == itemDeadLetter {
		s.dropLocked(it)
		delete(it.cur.items, it.entry)
	}
}
