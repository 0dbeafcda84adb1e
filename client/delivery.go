package client

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Delivery is a message that is leased to this program, until it is settled with Ack or Nack,
// or its lease is lost.
type Delivery struct {
	Received

	r       *receiver
	arrived time.Time
	lost    chan struct{} // closed when the lease is lost

	// r.mu protects the fields below.
	until    time.Time // end of the lease
	ended    bool      // settled or lost
	finished bool      // settled
}

// Ack acknowledges the message, so that it is not delivered again. It returns immediately; the
// client sends acknowledgements in batches. If an acknowledgement does not reach the server,
// the message is delivered again. If the server rejects it, the loop ends with the error. A
// second Ack or Nack has no effect.
//
// After the loop has ended, Ack makes the call itself, with a timeout of ten seconds.
func (d *Delivery) Ack() { d.r.add(settlement{d: d}) }

// AckWait acknowledges the message and waits until the acknowledgement is durable. If ctx is
// canceled first, the message may be acknowledged or not.
func (d *Delivery) AckWait(ctx context.Context) error {
	done := make(chan error, 1)
	if !d.r.add(settlement{d: d, done: done}) {
		return nil // already settled
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Nack returns the message to the server, which delivers it again after the delay to any
// consumer. It returns immediately, like Ack.
func (d *Delivery) Nack(delay time.Duration) { d.r.add(settlement{d: d, nack: true, delay: delay}) }

// Lost returns a channel that is closed when the lease is lost: the server did not respond in
// time, or the message was held for MaxExtension. Another consumer may have the message then.
// Stop processing it. If it is already processed, Ack still works.
func (d *Delivery) Lost() <-chan struct{} { return d.lost }

// settlement is an Ack or a Nack that is not sent yet.
type settlement struct {
	d     *Delivery
	nack  bool
	delay time.Duration
	done  chan error // capacity 1; nil if no caller waits
}

// add queues a settlement, or makes the call if the loop has ended. It returns false if the
// message is already settled. A lost message can still be acknowledged.
func (r *receiver) add(s settlement) bool {
	r.mu.Lock()
	_, held := r.held[s.d]
	late := s.d.ended && !s.d.finished && !s.nack // an Ack of a lost message
	if !held && !late {
		r.mu.Unlock()
		return false
	}
	s.d.ended, s.d.finished = true, true
	delete(r.held, s.d)
	closed := r.closed
	if !closed {
		r.queue = append(r.queue, s)
		r.flushNow = r.flushNow || s.done != nil || len(r.queue) >= MaxBatch
	}
	r.mu.Unlock()
	signal(r.wakeFetch)
	if !closed {
		signal(r.queueChanged)
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleGrace)
	defer cancel()
	r.send(ctx, []settlement{s})
	return true
}

// settle sends the queued settlements in batches, until the receiver is closed.
func (r *receiver) settle() {
	for {
		<-r.queueChanged
		r.linger()
		r.mu.Lock()
		queue := r.queue
		r.queue, r.flushNow = nil, false
		r.closed = r.finish && len(queue) == 0
		closed, finish := r.closed, r.finish
		r.mu.Unlock()
		if closed {
			return
		}
		r.send(r.settleCtx, queue)
		if finish {
			signal(r.queueChanged) // check the queue again
		}
	}
}

// linger waits AckLinger for more settlements, unless a caller waits.
func (r *receiver) linger() {
	if r.o.AckLinger <= 0 {
		return
	}
	timer := time.NewTimer(r.o.AckLinger)
	defer timer.Stop()
	for {
		r.mu.Lock()
		flushNow := r.flushNow || r.finish
		r.mu.Unlock()
		if flushNow {
			return
		}
		select {
		case <-timer.C:
			return
		case <-r.queueChanged:
		}
	}
}

// send makes the calls for settlements and notifies the waiting callers.
func (r *receiver) send(ctx context.Context, queue []settlement) {
	batches := make(map[time.Duration][]settlement) // nacks by their delay, acks by -1
	for _, s := range queue {
		kind := time.Duration(-1)
		if s.nack {
			kind = s.delay
		}
		batches[kind] = append(batches[kind], s)
	}
	for kind, batch := range batches {
		for len(batch) > 0 {
			n := min(len(batch), MaxBatch)
			r.sendBatch(ctx, kind, batch[:n])
			batch = batch[n:]
		}
	}
}

// sendBatch makes one call. The server rejects the whole call if it rejects one message, so
// sendBatch then makes one call for each message.
func (r *receiver) sendBatch(ctx context.Context, kind time.Duration, batch []settlement) {
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].d.ID
	}
	err := r.retry(ctx, func() error {
		if kind < 0 {
			return r.s.Ack(ctx, ids...)
		}
		return r.s.Nack(ctx, kind, ids...)
	})
	refused := errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) || errors.Is(err, ErrInvalid)
	if refused && len(batch) > 1 {
		for i := range batch {
			r.sendBatch(ctx, kind, batch[i:i+1])
		}
		return
	}
	if kind >= 0 && errors.Is(err, ErrConflict) {
		err = nil // the lease has expired, so the server delivers the message again anyway
	}
	for _, s := range batch {
		if s.done != nil {
			s.done <- err
		} else if err != nil && !isTemporary(err) && !errors.Is(err, context.Canceled) {
			r.fail(fmt.Errorf("settling message %s: %w", s.d.StringID, err))
		}
	}
}

// retry retries a call while its error is temporary, until ctx is canceled.
func (r *receiver) retry(ctx context.Context, call func() error) error {
	for attempt := 1; ; attempt++ {
		err := call()
		if err == nil || !isTemporary(err) || ctx.Err() != nil {
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
