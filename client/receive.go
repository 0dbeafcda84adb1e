package client

import (
	"context"
	"errors"
	"iter"
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
	// pollTimeout is how long one call waits for a message.
	pollTimeout = 20 * time.Second
	// settleGrace is the timeout of the last settlements when a loop ends.
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
type receiver struct {
	s *Subscription
	o ReceiveOptions

	ctx          context.Context // of fetching
	cancel       context.CancelFunc
	settleCtx    context.Context // of settling and extending; not canceled with ctx
	cancelSettle context.CancelFunc
	out          chan *Delivery // capacity MaxHeld
	failed       chan error     // capacity 1
	freed        chan struct{}  // capacity 1: signals that a message was settled
	queueChanged chan struct{}  // capacity 1: signals that the queue has changed

	fetching, extending, settling sync.WaitGroup

	// mu protects the fields below. It is not held while calling or waiting.
	mu       sync.Mutex
	held     map[*Delivery]struct{}
	queue    []settlement
	flushNow bool // send the queue without lingering
	finish   bool // the loop is ending: send the queue, then stop
	closed   bool // the settling goroutine has stopped
}

func (s *Subscription) receive(ctx context.Context) *receiver {
	r := &receiver{s: s, o: s.ReceiveOptions, held: make(map[*Delivery]struct{})}
	r.o.defaults()
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.settleCtx, r.cancelSettle = context.WithCancel(context.WithoutCancel(ctx))
	r.out, r.failed = make(chan *Delivery, r.o.MaxHeld), make(chan error, 1)
	r.freed, r.queueChanged = make(chan struct{}, 1), make(chan struct{}, 1)
	r.fetching.Go(r.fetch)
	r.extending.Go(r.extend)
	r.settling.Go(r.settle)
	return r
}

// next returns the next message, an error that ends the loop, or neither if ctx is canceled.
func (r *receiver) next(ctx context.Context) (*Delivery, error) {
	for ctx.Err() == nil {
		select {
		case d := <-r.out:
			if !d.settled() {
				return d, nil
			}
		case err := <-r.failed:
			return nil, err
		case <-ctx.Done():
		}
	}
	return nil, nil
}

// fail ends the loop with an error, unless it already has one.
func (r *receiver) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// close stops the goroutines after pending settlements are sent.
func (r *receiver) close() {
	r.cancel()
	r.fetching.Wait()
	for waiting := true; waiting; {
		select {
		case d := <-r.out:
			d.Nack(0)
		default:
			waiting = false
		}
	}
	r.mu.Lock()
	r.finish = true
	r.mu.Unlock()
	signal(r.queueChanged)
	grace := time.AfterFunc(settleGrace, r.cancelSettle)
	r.settling.Wait()
	grace.Stop()
	r.cancelSettle()
	r.extending.Wait()
}

// fetch fetches messages while fewer than MaxHeld are held.
func (r *receiver) fetch() {
	responded := false
	for attempt := 1; r.ctx.Err() == nil; attempt++ {
		n := r.free()
		if n == 0 {
			select {
			case <-r.freed:
			case <-r.ctx.Done():
			}
			continue
		}
		received, err := r.s.Fetch(r.ctx, min(n, MaxBatch), pollTimeout, r.o.Lease)
		arrived := time.Now()
		switch {
		case err == nil:
			responded, attempt = true, 0
		case r.ctx.Err() != nil:
			return
		case !responded || !isTemporary(err):
			r.fail(err)
			return
		default:
			r.pause(attempt)
		}
		for i := range received {
			d := &Delivery{
				Received: received[i], r: r, arrived: arrived, until: arrived.Add(r.o.Lease),
				lost: make(chan struct{}),
			}
			r.mu.Lock()
			r.held[d] = struct{}{}
			r.mu.Unlock()
			r.out <- d // does not block, because at most MaxHeld are held
		}
	}
}

// free returns how many more messages may be held.
func (r *receiver) free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.o.MaxHeld - len(r.held)
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
