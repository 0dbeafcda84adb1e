package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Delivery is a message that this program holds: it is nobody else's until it is
// settled by Ack or Nack, or lost.
type Delivery struct {
	Received

	r       *receiver
	arrived time.Time
	lost    chan struct{} // closed when the lease has ended

	// What follows is guarded by r.mu.
	until    time.Time // the lease ends then
	over     bool      // settled or lost
	finished bool      // settled
}

// Ack acknowledges the message: it is dealt with and is not delivered again. It
// returns at once; acknowledgements are sent together, soon. One that does not
// reach the server means that the message comes again. One that the server
// refuses ends the loop with the error. Settling a message again does nothing.
//
// After its loop has ended, Ack makes the call itself, within ten seconds.
func (d *Delivery) Ack() { d.r.add(settlement{d: d}) }

// AckWait acknowledges the message and waits until that is durable. When ctx ends
// first it may be acknowledged nevertheless.
func (d *Delivery) AckWait(ctx context.Context) error {
	done := make(chan error, 1)
	if !d.r.add(settlement{d: d, done: done}) {
		return nil // settled before
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Nack gives the message back: it is delivered again after the delay, to whoever
// asks next. It returns at once, as Ack does.
func (d *Delivery) Nack(delay time.Duration) { d.r.add(settlement{d: d, nack: true, delay: delay}) }

// Lost is closed when the lease could not be kept: the server did not answer in
// time, or the message was held for MaxExtension. Somebody else may have it then.
// Work on it should stop; if it is done after all, Ack counts.
func (d *Delivery) Lost() <-chan struct{} { return d.lost }

// settled says whether the message is no longer held.
func (d *Delivery) settled() bool {
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	return d.over
}

// settlement is an Ack or a Nack on its way.
type settlement struct {
	d     *Delivery
	nack  bool
	delay time.Duration
	done  chan error // has room for one; nil when nobody waits
}

// add queues a settlement, or makes the call when the loop has ended. It returns
// false for a message that was settled before. An acknowledgement of one that is
// lost counts.
func (r *receiver) add(s settlement) bool {
	r.mu.Lock()
	_, held := r.held[s.d]
	late := s.d.over && !s.d.finished && !s.nack // lost, and done after all
	if !held && !late {
		r.mu.Unlock()
		return false
	}
	s.d.over, s.d.finished = true, true
	delete(r.held, s.d)
	closed := r.closed
	if !closed {
		r.queue = append(r.queue, s)
		r.hurry = r.hurry || s.done != nil || len(r.queue) >= MaxBatch
	}
	r.mu.Unlock()
	signal(r.room)
	if !closed {
		signal(r.kick)
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleGrace)
	defer cancel()
	r.send(ctx, []settlement{s})
	return true
}

// settle sends what is queued, together what comes together.
func (r *receiver) settle() {
	for {
		<-r.kick
		r.linger()
		r.mu.Lock()
		queue := r.queue
		r.queue, r.hurry = nil, false
		r.closed = r.finish && len(queue) == 0
		closed, finish := r.closed, r.finish
		r.mu.Unlock()
		if closed {
			return
		}
		r.send(r.settles, queue)
		if finish {
			signal(r.kick) // look once more
		}
	}
}

// linger waits for more to settle, unless somebody waits already.
func (r *receiver) linger() {
	if r.o.AckLinger <= 0 {
		return
	}
	timer := time.NewTimer(r.o.AckLinger)
	defer timer.Stop()
	for {
		r.mu.Lock()
		hurry := r.hurry || r.finish
		r.mu.Unlock()
		if hurry {
			return
		}
		select {
		case <-timer.C:
			return
		case <-r.kick:
		}
	}
}

// send makes the calls for settlements and tells whoever waits for them.
func (r *receiver) send(ctx context.Context, queue []settlement) {
	groups := make(map[time.Duration][]settlement) // nacks by their delay, acks by -1
	for _, s := range queue {
		kind := time.Duration(-1)
		if s.nack {
			kind = s.delay
		}
		groups[kind] = append(groups[kind], s)
	}
	for kind, group := range groups {
		for len(group) > 0 {
			n := min(len(group), MaxBatch)
			r.sendGroup(ctx, kind, group[:n])
			group = group[n:]
		}
	}
}

// sendGroup makes one call, and one for each message when the server refuses one
// of them, since that refuses all.
func (r *receiver) sendGroup(ctx context.Context, kind time.Duration, group []settlement) {
	ids := make([]string, len(group))
	for i := range group {
		ids[i] = group[i].d.ID
	}
	err := r.persist(ctx, func() error {
		if kind < 0 {
			return r.s.Ack(ctx, ids...)
		}
		return r.s.Nack(ctx, kind, ids...)
	})
	refused := errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) || errors.Is(err, ErrInvalid)
	if refused && len(group) > 1 {
		for i := range group {
			r.sendGroup(ctx, kind, group[i:i+1])
		}
		return
	}
	if kind >= 0 && errors.Is(err, ErrConflict) {
		err = nil // the lease had ended: it comes again anyway
	}
	for _, s := range group {
		if s.done != nil {
			s.done <- err
		} else if err != nil && !passing(err) && !errors.Is(err, context.Canceled) {
			r.fail(fmt.Errorf("settling message %s: %w", s.d.StringID, err))
		}
	}
}

// persist repeats a call as long as its error goes away by itself and ctx lasts.
func (r *receiver) persist(ctx context.Context, call func() error) error {
	for attempt := 1; ; attempt++ {
		err := call()
		if err == nil || !passing(err) || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(jitter(attempt))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
