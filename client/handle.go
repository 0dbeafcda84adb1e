package client

import (
	"context"
	"sync"
	"time"
)

// Handle receives messages and calls handle for each, with workers concurrent calls, until ctx
// is canceled. If handle returns nil, the message is acknowledged. If it returns an error, the
// message is redelivered after one second; the delay doubles with each redelivery, up to one
// minute. The dead letter policy of the subscription limits the redeliveries.
//
// The context of handle is canceled when the lease of the message is lost, but not when ctx is
// canceled. So when ctx is canceled, Handle receives no more messages, waits for the running
// handlers while it extends their leases, and returns nil. Otherwise it returns the same error
// as Messages.
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

// handle calls the handler for one message and settles the message.
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
