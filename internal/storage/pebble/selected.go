package pebble

import (
	"cmp"
	"context"
	"errors"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/unpacking"
	"freshet/internal/storage/engine"
)

const (
	// maxSelect bounds how many messages one call of Selector.Select reads.
	maxSelect = 512
	// selectSlice is how long one call of Selector.Select reads, after the first minSelect messages or
	// minSelectBytes: a busy machine makes small topics no slower.
	selectSlice    = 50 * time.Millisecond
	minSelect      = 16
	minSelectBytes = 1 << 20
	// selectTimeout is how long a Receive waits for the Selector at least, although it does not wait for
	// messages: a few slices of other callers.
	selectTimeout = 4 * selectSlice
	// selectLease is the lease of messages while the filter is evaluated. It never expires before the
	// evaluation ends, because that would count as a delivery.
	selectLease = 10 * time.Minute
)

// SelectWith implements engine.Engine.
func (e *Engine) SelectWith(s engine.Selector) { e.selector.Store(&s) }

// receiveSelected is Receive for a subscription with a filter, after the first messages were leased. While
// the filter selects none, it leases more of them at a time.
func (s *subscription) receiveSelected(ctx context.Context, got leaseBatch, req engine.ReceiveRequest,
	deadline time.Time,
) ([]engine.Delivery, error) {
	selector := s.engine().selector.Load()
	if selector == nil {
		s.returnLeases(got)
		return nil, engine.ErrNoSelector
	}
	timeout := later(deadline, time.Now().Add(selectTimeout))
	until := later(deadline, time.Now().Add(selectSlice))
	for batch := req; ; {
		p := pass{s: s, got: got, max: req.Max, maxBytes: req.MaxBytes}
		err := p.run(ctx, *selector, time.Until(timeout))
		if err == nil {
			err = p.apply(ctx, req.Lease)
		}
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return nil, nil // the wait has ended
		case err != nil:
			return nil, err
		case len(p.out) > 0:
			return p.deliver(ctx)
		case p.damage != nil && p.evaluated == 0:
			return nil, p.damage
		case !time.Now().Before(until):
			return nil, nil
		}
		if batch.Max < maxSelect {
			batch.Max = min(2*batch.Max, maxSelect)
		}
		if got, err = s.take(ctx, batch, deadline); err != nil || len(got.leases) == 0 {
			return nil, err
		}
		if got.filter == "" { // it was removed meanwhile
			s.returnLeases(got)
			req.Wait = max(0, time.Until(deadline))
			return s.engine().Receive(ctx, s.topic.id, s.name, req)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pass evaluates the filter for leased messages, and applies the verdicts.
type pass struct {
	s        *subscription
	got      leaseBatch // leased for the evaluation
	max      int
	maxBytes int

	evaluated int // messages with a verdict
	selected  []leased
	out       []engine.Delivery // of selected
	failed    []bool            // whether the evaluation failed, by message of selected
	at        instant           // when the leases of selected expire, once the verdicts are applied
	passed    []leased
	damaged   []leased
	damage    error // of the first damaged message
	rest      []leased
}

// run reads the messages and evaluates the filter. On an error it returns all leases.
func (p *pass) run(ctx context.Context, selector engine.Selector, timeout time.Duration) error {
	read := func(evaluate engine.Evaluate) error { return p.read(ctx, evaluate) }
	err := selector.Select(ctx, timeout, p.s.topic.id, p.got.filter, read)
	if err != nil {
		p.s.returnLeases(p.got)
	}
	return err
}

// read reads messages until enough are selected or the slice ends.
func (p *pass) read(ctx context.Context, evaluate engine.Evaluate) error {
	r := reader{e: p.s.engine()}
	defer r.close()
	if len(p.got.leases) >= iterateFrom {
		if err := r.iterate(); err != nil {
			return err
		}
	}
	end := time.Now().Add(selectSlice)
	weight, total := 0, 0 // bytes of the selected messages, and of all
	for i, l := range p.got.leases {
		record, size, err := r.read(ctx, l.cur.part, l.entry)
		switch {
		case errors.Is(err, cdb.ErrNotFound):
			p.s.forgetTrimmed(l.item)
			continue
		case errors.Is(err, engine.ErrCorrupt):
			p.damage = cmp.Or(p.damage, err)
			p.damaged = append(p.damaged, l)
			continue
		case errors.Is(err, unpacking.ErrBusy) && p.evaluated > 0:
			p.rest = p.got.leases[i:]
			return nil
		case err != nil:
			return err
		}
		l.size.Store(size)
		verdict := engine.Selected
		if l.deliveries == 1 { // one that was delivered before stays selected
			verdict = evaluate(&record)
			if verdict == engine.Failed && ctx.Err() != nil {
				return ctx.Err() // the evaluation may have failed because the call has ended
			}
		}
		if verdict != engine.PassedOver {
			if weight += record.Weight(); p.maxBytes > 0 && weight > p.maxBytes && len(p.out) > 0 {
				p.rest = p.got.leases[i:]
				return nil
			}
		}
		p.add(l, record, verdict)
		total += record.Weight()
		if len(p.out) == p.max || (p.evaluated >= minSelect || total >= minSelectBytes) && !time.Now().Before(end) {
			p.rest = p.got.leases[i+1:]
			return nil
		}
	}
	return nil
}

func (p *pass) add(l leased, record engine.Record, verdict engine.Verdict) {
	p.evaluated++
	if verdict == engine.PassedOver {
		p.passed = append(p.passed, l)
		return
	}
	p.selected = append(p.selected, l)
	p.failed = append(p.failed, verdict == engine.Failed)
	p.out = append(p.out, engine.Delivery{Record: record, Redeliveries: l.deliveries - 1})
}

// apply acknowledges the messages that the filter passes over, and leases the selected ones to the consumer.
// If the filter was replaced meanwhile, it returns all messages, which are evaluated again. It waits for the
// acknowledgements if no message is selected.
func (p *pass) apply(ctx context.Context, lease time.Duration) error {
	s := p.s
	if err := s.lockLoaded(); err != nil {
		return err // the subscription was deleted, and its leases with it
	}
	now := time.Now()
	if s.config.Filter != p.got.filter {
		p.out, p.damage = nil, nil
		s.returnLeasesLocked(p.got)
		s.dispatchLocked(now)
		s.mu.Unlock()
		return nil
	}
	s.returnLeasesLocked(leaseBatch{at: p.got.at, leases: p.rest})
	lease = s.leaseOfLocked(lease)
	p.at = s.engine().instant(now) + instant(lease)
	p.leaseSelectedLocked(now.Add(lease))
	passed, err := p.acknowledgeLocked(now)
	if err != nil {
		s.returnLeasesLocked(leaseBatch{at: p.at, leases: p.selected})
		s.returnLeasesLocked(leaseBatch{at: p.got.at, leases: p.passed})
	}
	g := s.changedIn
	s.dispatchLocked(now)
	s.mu.Unlock()
	if passed > 0 {
		(*s.engine().selector.Load()).PassedOver(s.topic.id, passed)
	}
	if err == nil && passed > 0 && len(p.out) == 0 {
		err = g.wait(ctx)
	}
	return err
}

// leaseSelectedLocked replaces the leases of the evaluation by those of the consumer. The caller holds s.mu.
func (p *pass) leaseSelectedLocked(until time.Time) {
	s := p.s
	n := 0
	for i, l := range p.selected {
		if !l.heldLocked(p.got.at) {
			continue // acknowledged or reset meanwhile
		}
		s.dropLocked(l.item)
		s.leaseLocked(l.item, p.at)
		p.selected[n], p.out[n] = l, p.out[i]
		p.out[n].LeasedUntil = until
		n++
		if l.deliveries == 1 { // the filter was evaluated
			s.counts.filtered.Selected++
		}
		if p.failed[i] {
			s.counts.filtered.Failed++
		}
	}
	p.selected, p.out = p.selected[:n], p.out[:n]
	for _, l := range p.damaged {
		if l.heldLocked(p.got.at) {
			s.dropLocked(l.item)
			s.leaseLocked(l.item, p.at)
		}
	}
}

// ackChunk is how many messages are acknowledged while committer.mu is held, for which producers wait.
const ackChunk = 32

// acknowledgeLocked acknowledges the messages that are passed over, and returns their number. The caller
// holds s.mu.
func (p *pass) acknowledgeLocked(now time.Time) (passed int, err error) {
	s := p.s
	for rest := p.passed; len(rest) > 0 && err == nil; {
		chunk := rest[:min(ackChunk, len(rest))]
		rest = rest[len(chunk):]
		var g *commitBatch
		if g, err = s.engine().commit.lockBatch(); err != nil {
			break
		}
		for _, l := range chunk {
			if l.heldLocked(p.got.at) {
				l.cur.ackLocked(g, l.entry, l.size.Load())
				passed++
			}
		}
		s.topic.scheduleAfterAckLocked(g, now.UnixMilli())
		s.engine().commit.unlockAndCommit()
	}
	s.counts.filtered.PassedOver += uint64(passed)
	return passed, err
}

// deliver returns the selected messages unless the call has ended or the engine has stopped.
func (p *pass) deliver(ctx context.Context) ([]engine.Delivery, error) {
	err := ctx.Err()
	if err == nil {
		err = p.s.engine().live()
	}
	if err != nil {
		p.s.returnLeases(leaseBatch{at: p.at, leases: p.selected})
		return nil, err
	}
	return p.out, nil
}
