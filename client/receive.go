package client

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// ReceiveOptions say how messages are received. The zero value is good for most
// programs.
type ReceiveOptions struct {
	// Lease is how long a message is nobody else's; 30 s when zero, 1 s to 12 h. It
	// is extended by itself while a message is held, so it says how long others
	// wait for the messages of a program that has died.
	Lease time.Duration
	// MaxHeld is how many messages are held at a time, those that wait for the loop
	// and those that it has not settled yet; 100 when zero.
	MaxHeld int
	// MaxExtension is how long one message may be held; an hour when zero. After
	// it the message is lost to others, so that one that was forgotten comes again.
	MaxExtension time.Duration
	// AckLinger is how long an acknowledgement may wait for others to share a call;
	// 20 ms when zero, negative not at all.
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

// Bounds of receiving.
const (
	// pollWait is how long one call waits for a message.
	pollWait = 20 * time.Second
	// settleGrace bounds the calls that end a loop.
	settleGrace = 10 * time.Second
)

// Messages receives messages until ctx ends or the loop is left:
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
// Every message is delivered at least once: again when it is given back, when the
// program dies before it has acknowledged it, and when an acknowledgement is lost
// with the connection. What the loop does with a message should bear being done
// twice.
//
// A message is held, and its lease extended, until it is settled by Ack or Nack,
// by any goroutine. MaxHeld that are not settled bring the loop to a halt.
//
// An error is the last thing that the loop gets. A server that cannot be reached
// at the beginning is one; after the first answer a server that does not answer
// is waited for until ctx ends. When ctx ends the loop ends without an error.
//
// However the loop ends, acknowledgements that wait are sent before it returns,
// and what it was not given goes back to the server at once; both within ten
// seconds, also when ctx has ended. Messages that other goroutines still hold can
// be settled afterwards, but their leases are not extended any more: Handle waits
// for them.
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

// receiver is the loop's other side. Three goroutines belong to it: one fetches
// messages, one extends leases, one settles. close ends them.
type receiver struct {
	s *Subscription
	o ReceiveOptions

	ctx     context.Context // of fetching
	cancel  context.CancelFunc
	settles context.Context // of settling and extending; outlives ctx
	abandon context.CancelFunc
	out     chan *Delivery // has room for all that may be held
	failed  chan error     // has room for one
	room    chan struct{}  // has room for one: a message was settled
	kick    chan struct{}  // has room for one: there is something to settle

	fetching, extending, settling sync.WaitGroup

	// mu guards what follows; nobody holds it while calling or waiting.
	mu     sync.Mutex
	held   map[*Delivery]struct{}
	queue  []settlement
	hurry  bool // somebody waits for the queue
	finish bool // the loop is ending: settle what is queued, then end
	closed bool // nobody settles the queue any more
}

func (s *Subscription) receive(ctx context.Context) *receiver {
	r := &receiver{s: s, o: s.ReceiveOptions, held: make(map[*Delivery]struct{})}
	r.o.defaults()
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.settles, r.abandon = context.WithCancel(context.WithoutCancel(ctx))
	r.out, r.failed = make(chan *Delivery, r.o.MaxHeld), make(chan error, 1)
	r.room, r.kick = make(chan struct{}, 1), make(chan struct{}, 1)
	r.fetching.Go(r.fetch)
	r.extending.Go(r.extend)
	r.settling.Go(r.settle)
	return r
}

// next returns the next message, an error that ends the loop, or neither when ctx
// has ended.
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

// fail ends the loop with an error, unless it has one.
func (r *receiver) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// close ends the loop.
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
	signal(r.kick)
	grace := time.AfterFunc(settleGrace, r.abandon)
	r.settling.Wait()
	grace.Stop()
	r.abandon()
	r.extending.Wait()
}

// fetch asks for messages as long as there is room for them.
func (r *receiver) fetch() {
	answered := false
	for attempt := 1; r.ctx.Err() == nil; attempt++ {
		n := r.free()
		if n == 0 {
			select {
			case <-r.room:
			case <-r.ctx.Done():
			}
			continue
		}
		received, err := r.s.Fetch(r.ctx, min(n, MaxBatch), pollWait, r.o.Lease)
		arrived := time.Now()
		switch {
		case err == nil:
			answered, attempt = true, 0
		case r.ctx.Err() != nil:
			return
		case !answered || !passing(err):
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
			r.out <- d // there is room
		}
	}
}

// free is how many more messages may be held.
func (r *receiver) free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.o.MaxHeld - len(r.held)
}

// pause waits before the next attempt.
func (r *receiver) pause(attempt int) {
	timer := time.NewTimer(jitter(attempt))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

// passing says that an error goes away by itself.
func passing(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrThrottled) }

// signal wakes whoever waits on a channel that has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
