package client

import (
	"context"
	"errors"
	"iter"
	"math"
	"sync"
	"time"
)

// ReceiveOptions configure Messages and Handle. The zero value is suitable for most programs.
type ReceiveOptions struct {
	// Lease is how long a message is leased to this program, 1 s to 12 h; 30 s when zero. The
	// client extends the lease while it holds the message. So it is the time after which the
	// server redelivers the messages of a program that has crashed.
	Lease time.Duration
	// MaxHeld is the maximum number of messages that are held: those that wait for the loop
	// and those that are not settled; 100 when zero.
	MaxHeld int
	// MaxExtension is how long one message may be held; one hour when zero. After that the
	// lease expires, so that a message that was never settled is delivered again.
	MaxExtension time.Duration
	// AckLinger is how long an acknowledgement waits for others in the same call; 20 ms when
	// zero, no wait when negative.
	AckLinger time.Duration
}

func (o *ReceiveOptions) defaults() {
	if o.Lease <= 0 {
		o.Lease = 30 * time.Second
	}
	if o.MaxHeld <= 0 {
		o.MaxHeld = 100
	}
	if o.MaxExtension <= 0 {
		o.MaxExtension = time.Hour
	}
	if o.AckLinger == 0 {
		o.AckLinger = 20 * time.Millisecond
	}
}

// Timeouts of receiving.
const (
	// pollTimeout is how long one call waits for a message while the loop waits for one.
	pollTimeout = 20 * time.Second
	// settleGrace is the timeout of the last calls when a loop ends.
	settleGrace = 10 * time.Second
)

// Messages receives messages until ctx is canceled or the loop ends:
//
//	for msg, err := range sub.Messages(ctx) {
//		if err != nil {
//			return err
//		}
//		if err := work(ctx, msg.Value); err != nil {
//			msg.Nack(time.Second)
//			continue
//		}
//		msg.Ack()
//	}
//
// Delivery is at least once: a message is delivered again after a Nack, after the program
// crashed before it acknowledged the message, and after an acknowledgement was lost with the
// connection. Make the processing idempotent.
//
// A message is held, and its lease extended, until any goroutine settles it with Ack or Nack.
// The loop blocks while MaxHeld messages are not settled.
//
// An error ends the loop. If the server is not reachable at the start, the loop ends with an
// error. After the first response, the loop retries until ctx is canceled. When ctx is
// canceled the loop ends without an error.
//
// When the loop ends, Messages sends pending acknowledgements and returns the messages that
// the loop has not got to the server. Both are limited to ten seconds, also if ctx is
// canceled. Other goroutines can settle messages later, but their leases are not extended any
// more; Handle waits for them.
func (s *Subscription) Messages(ctx context.Context) iter.Seq2[*Delivery, error] {
	return func(yield func(*Delivery, error) bool) {
		if s.err != nil {
			yield(nil, s.err)
			return
		}
		r := s.receive(ctx)
		defer r.close()
		for {
			d, err := r.next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if d == nil || !yield(d, nil) {
				return
			}
		}
	}
}

// receiver implements Messages and Handle. It has three goroutines: one fetches messages, one
// extends leases, one sends settlements. close stops them.
//
// A poll waits at the server only while the buffer is empty and the loop waits for a message.
// Otherwise it returns immediately, and close does not cancel it. So no poll is canceled when there
// are messages to return. The server notices a canceled poll late, and could lease to it the messages
// that close returns; nobody would receive them until these leases expire.
type receiver struct {
	s *Subscription
	o ReceiveOptions

	ctx          context.Context // of fetching
	cancel       context.CancelFunc
	settleCtx    context.Context // of settling, extending and polls that do not wait; not canceled with ctx
	cancelSettle context.CancelFunc
	failed       chan error    // capacity 1
	wakeFetch    chan struct{} // capacity 1: signals that a message was settled or taken, or that the loop waits
	queueChanged chan struct{} // capacity 1: signals that the queue has changed

	fetching, extending, settling sync.WaitGroup

	// mu protects the fields below. It is not held while calling or waiting.
	mu       sync.Mutex
	held     map[*Delivery]struct{}
	buffered []*Delivery   // held, and not taken by the loop
	arrived  chan struct{} // closed when messages are added to buffered
	waiting  bool          // the loop found buffered empty, and no message was added since
	queue    []settlement
	flushNow bool // send the queue without lingering
	finish   bool // the loop is ending: send the queue, then stop
	closed   bool // the settling goroutine has stopped
}

func (s *Subscription) receive(ctx context.Context) *receiver {
	r := &receiver{
		s: s, o: s.ReceiveOptions, held: make(map[*Delivery]struct{}), arrived: make(chan struct{}),
		failed: make(chan error, 1), wakeFetch: make(chan struct{}, 1), queueChanged: make(chan struct{}, 1),
	}
	r.o.defaults()
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.settleCtx, r.cancelSettle = context.WithCancel(context.WithoutCancel(ctx))
	r.fetching.Go(r.fetch)
	r.extending.Go(r.extend)
	r.settling.Go(r.settle)
	return r
}

// next returns the next message, an error that ends the loop, or neither if ctx is canceled.
func (r *receiver) next(ctx context.Context) (*Delivery, error) {
	for ctx.Err() == nil {
		select {
		case err := <-r.failed:
			return nil, err
		default:
		}
		d, arrived := r.take()
		signal(r.wakeFetch)
		if d != nil {
			return d, nil
		}
		select {
		case <-arrived:
		case err := <-r.failed:
			return nil, err
		case <-ctx.Done():
		}
	}
	return nil, nil
}

// take returns the next buffered message. If there is none it marks the loop as waiting, and returns
// a channel that is closed when messages arrive.
func (r *receiver) take() (*Delivery, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.buffered) > 0 {
		d := r.buffered[0]
		r.buffered = r.buffered[1:]
		if !d.ended {
			return d, nil
		}
	}
	r.waiting = true
	return nil, r.arrived
}

// fail ends the loop with an error, unless it already has one.
func (r *receiver) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// close ends fetching, returns the messages that the loop has not taken, and stops the goroutines
// after pending settlements are sent.
func (r *receiver) close() {
	grace := time.AfterFunc(settleGrace, r.cancelSettle)
	defer grace.Stop()
	r.cancel()
	r.fetching.Wait()
	for d, _ := r.take(); d != nil; d, _ = r.take() {
		d.Nack(0)
	}
	r.mu.Lock()
	r.finish = true
	r.mu.Unlock()
	signal(r.queueChanged)
	r.settling.Wait()
	r.cancelSettle()
	r.extending.Wait()
}

// fetch fetches messages while fewer than MaxHeld are held.
func (r *receiver) fetch() {
	responded := false
	failures := 0
	prefetchAt := noPrefetch
	for r.ctx.Err() == nil {
		n, wait := r.nextPoll(prefetchAt)
		if n == 0 {
			select {
			case <-r.wakeFetch:
			case <-r.ctx.Done():
			}
			continue
		}
		ctx := r.ctx
		if wait == 0 {
			ctx = r.settleCtx
		}
		received, err := r.s.Fetch(ctx, n, wait, r.o.Lease)
		switch {
		case err == nil:
			responded, failures = true, 0
			prefetchAt = prefetchAfter(len(received), n)
			r.buffer(received)
		case r.ctx.Err() != nil:
			return
		case !responded || !isTemporary(err):
			r.fail(err)
			return
		default:
			failures++
			r.pause(failures)
		}
	}
}

// noPrefetch means that the next poll is made when the loop waits for a message.
const noPrefetch = -1

// prefetchAfter returns the number of buffered messages at which the next poll is made, after a poll
// that received some of the requested messages. A full response means that the server has more.
// After other responses the poll is made when the loop has taken half of the messages, and after a
// response with at most one message when the loop waits.
func prefetchAfter(received, requested int) int {
	switch {
	case received >= requested:
		return math.MaxInt
	case received > 1:
		return received / 2
	}
	return noPrefetch
}

// nextPoll returns how many messages to fetch now and how long the poll may wait for them at the
// server. The number is 0 if none is to be fetched.
func (r *receiver) nextPoll(prefetchAt int) (n int, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(r.o.MaxHeld-max(len(r.held), len(r.buffered)), MaxBatch) // buffered also has lost ones
	switch {
	case r.waiting:
		return n, pollTimeout
	case len(r.buffered) <= prefetchAt:
		return n, 0
	}
	return 0, 0
}

// buffer holds received messages for the loop.
func (r *receiver) buffer(received []Received) {
	if len(received) == 0 {
		return
	}
	arrived := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range received {
		d := &Delivery{
			Received: received[i], r: r, arrived: arrived, until: arrived.Add(r.o.Lease),
			lost: make(chan struct{}),
		}
		r.held[d] = struct{}{}
		r.buffered = append(r.buffered, d)
	}
	r.waiting = false
	close(r.arrived)
	r.arrived = make(chan struct{})
}

// pause waits for the backoff of an attempt.
func (r *receiver) pause(attempt int) {
	timer := time.NewTimer(jitter(attempt))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

// isTemporary reports whether an error is temporary.
func isTemporary(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrThrottled)
}

// signal sends to a channel of capacity 1, unless it already contains a signal.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
