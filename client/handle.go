package client

import (
	"context"
	"sync"
	"time"
)

// Handle receives messages and calls handle for each, for as many at a time as
// there are workers, until ctx ends. A message is acknowledged when handle returns
// nil. When it returns an error the message is given back, to come again after a
// second, and after twice as long each time, at most a minute; how often, and what
// then, is for the subscription's dead letters to say.
//
// The context of handle is that of the message: it ends when the lease is lost,
// and not with ctx. So when ctx ends, no more messages are taken, those under way
// are finished, with their leases extended, and Handle returns nil. Otherwise it
// returns the error that Messages would.
func (s *Subscription) Handle(ctx context.Context, workers int, handle func(context.Context, *Delivery) error) error {
	if s.err != nil {
		return s.err
	}
	workers = max(workers, 1)
	r := s.receive(ctx)
	defer r.close()
	var working sync.WaitGroup
	defer working.Wait()
	var once sync.Once
	var failure error
	done, stop := context.WithCancel(ctx)
	defer stop()
	for range workers {
		working.Go(func() {
			for {
				d, err := r.next(done)
				if err != nil {
					once.Do(func() { failure = err })
					stop()
				}
				if d == nil {
					return
				}
				r.handle(context.WithoutCancel(ctx), d, handle)
			}
		})
	}
	working.Wait()
	return failure
}

// handle runs the handler for one message and settles it.
func (r *receiver) handle(ctx context.Context, d *Delivery, handle func(context.Context, *Delivery) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-d.lost:
			cancel()
		case <-ended:
		}
	}()
	if err := handle(ctx, d); err != nil {
		d.Nack(min(time.Second<<min(d.Redeliveries, 6), time.Minute))
		return
	}
	d.Ack()
}
