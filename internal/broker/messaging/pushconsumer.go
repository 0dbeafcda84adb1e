package messaging

import (
	"context"
	"errors"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// PushConsumer delivers a subscription's messages to one consumer while the number of unsettled messages
// is below its credits. Any caller may settle them with Consumer.Settle; a push consumer gets a credit back
// when a message is settled or its lease ends.
type PushConsumer struct {
	consumer     *Consumer
	target       target
	subscription string
	lease        time.Duration
	live         *liveSubscription

	mu          sync.Mutex
	credits     int
	unsettled   map[engine.MessageID]pushLease // messages that are not settled
	creditFreed chan struct{}                  // capacity 1: a credit is free again
	ended       chan error                     // capacity 1: the subscription, topic or ownership ended
}

// pushLease is the lease of a message that a push consumer delivered.
type pushLease struct {
	delivery uint32
	until    time.Time
}

// PushConsumerOptions configures a push consumer.
type PushConsumerOptions struct {
	Credits int           // limit of unsettled messages; 0 means 100
	Lease   time.Duration // 0 means the subscription's lease
}

const defaultCredits = 100

// OpenPushConsumer opens a push consumer. The caller must close it.
func (c *Consumer) OpenPushConsumer(ctx context.Context, name names.Topic, subscription string,
	opts PushConsumerOptions,
) (*PushConsumer, error) {
	if opts.Credits < 0 || opts.Credits > c.limits.MaxCredits {
		return nil, errs.Newf(errs.Invalid, "%w: credits must be between 1 and %d", engine.ErrInvalid,
			c.limits.MaxCredits)
	}
	if opts.Credits == 0 {
		opts.Credits = defaultCredits
	}
	if err := c.checkLease(opts.Lease); err != nil {
		return nil, err
	}
	t, _, err := c.describeSubscription(ctx, name, subscription)
	if err != nil {
		return nil, err
	}
	s := &PushConsumer{
		consumer: c, target: t, subscription: subscription, lease: opts.Lease,
		live:    c.live.of(t.id).subscription(subscription),
		credits: opts.Credits, unsettled: make(map[engine.MessageID]pushLease), creditFreed: make(chan struct{}, 1),
		ended: make(chan error, 1),
	}
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	if s.live.consumers == nil {
		s.live.consumers = make(map[*PushConsumer]struct{})
	}
	s.live.consumers[s] = struct{}{}
	s.live.openConsumers.Add(1)
	return s, nil
}

// deliveryBatch bounds the messages of one call of Next, so that a slow reader holds few leases.
const deliveryBatch = 32

// Next returns the next messages, or none when none arrive within the wait. It returns ErrClosing
// when the broker drains.
func (s *PushConsumer) Next(ctx context.Context, wait time.Duration) ([]Received, error) {
	deadline := time.Now().Add(wait)
	for {
		if s.consumer.life.draining.Err() != nil {
			return nil, ErrClosing
		}
		select {
		case err := <-s.ended:
			return nil, err
		default:
		}
		free, next := s.freeCredits(time.Now())
		if free > 0 {
			received, err := s.receive(ctx, min(free, deliveryBatch), time.Until(deadline))
			if err == nil && len(received) == 0 && s.consumer.life.draining.Err() != nil {
				err = ErrClosing
			}
			return received, err
		}
		until := deadline
		if next.Before(until) {
			until = next
		}
		timer := time.NewTimer(time.Until(until))
		select {
		case <-s.creditFreed:
		case <-timer.C:
		case err := <-s.ended:
			timer.Stop()
			return nil, err
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-s.consumer.life.draining.Done():
			timer.Stop()
			return nil, ErrClosing
		}
		timer.Stop()
		if !time.Now().Before(deadline) {
			return nil, nil
		}
	}
}

func (s *PushConsumer) receive(ctx context.Context, n int, wait time.Duration) ([]Received, error) {
	req := engine.ReceiveRequest{
		Max: n, MaxBytes: s.consumer.limits.MessageBytes, Lease: s.lease,
		Partition: s.target.partition,
	}
	received, err := s.consumer.receive(ctx, s.target, s.subscription, req, wait)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range received {
		id, err := s.target.engineID(received[i].ID)
		if err != nil {
			continue // impossible: the id was derived from the same target
		}
		s.unsettled[id] = pushLease{delivery: received[i].Redeliveries + 1, until: received[i].LeasedUntil}
	}
	return received, nil
}

// freeCredits returns the number of free credits and the end of the next lease. It drops expired leases.
func (s *PushConsumer) freeCredits(at time.Time) (int, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := at.Add(time.Hour)
	for id, l := range s.unsettled {
		if !l.until.After(at) {
			delete(s.unsettled, id)
		} else if l.until.Before(next) {
			next = l.until
		}
	}
	return s.credits - len(s.unsettled), next
}

// onSettled updates the unsettled messages after a settlement and wakes Next when a credit is free.
func (s *PushConsumer) onSettled(list []engine.Settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.unsettled)
	for i := range list {
		st := &list[i]
		switch st.Action {
		case Extend:
			if l, ok := s.unsettled[st.ID]; ok {
				l.until = time.Now().Add(st.Delay)
				s.unsettled[st.ID] = l
			}
		case AckTo:
			for id := range s.unsettled {
				if id.Partition == st.ID.Partition && id.Entry <= st.ID.Entry {
					delete(s.unsettled, id)
				}
			}
		default:
			delete(s.unsettled, st.ID)
		}
	}
	if len(s.unsettled) < before {
		select {
		case s.creditFreed <- struct{}{}:
		default:
		}
	}
}

// Close ends the push consumer and releases the leases of its unsettled messages immediately, as
// Pulsar does when a consumer disconnects.
func (s *PushConsumer) Close() error {
	s.live.mu.Lock()
	if _, ok := s.live.consumers[s]; !ok {
		s.live.mu.Unlock()
		return nil
	}
	delete(s.live.consumers, s)
	s.live.openConsumers.Add(-1)
	s.live.mu.Unlock()

	s.mu.Lock()
	var list []engine.Settlement
	for id, l := range s.unsettled {
		list = append(list, engine.Settlement{ID: id, Action: engine.Release, Delivery: l.delivery})
	}
	s.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	// The caller's context has most likely ended; the leases must be released anyway.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.consumer.life.ctx), releaseTimeout)
	defer cancel()
	err := s.consumer.engine.Settle(ctx, s.target.id, s.subscription, list)
	if errors.Is(err, ErrNoSubscription) || errors.Is(err, ErrNoTopic) {
		return nil // deleted, so no lease exists any more
	}
	return err
}

const releaseTimeout = 5 * time.Second

// ReleaseLeases releases the leases of messages that did not reach their consumer. Messages that were
// settled in the meantime stay settled.
func (c *Consumer) ReleaseLeases(name names.Topic, subscription string, received []Received) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.life.ctx), releaseTimeout)
	defer cancel()
	t, err := c.catalogue.resolve(ctx, name)
	if err != nil {
		return err
	}
	list := make([]engine.Settlement, len(received))
	for i := range received {
		id, err := t.engineID(received[i].ID)
		if err != nil {
			return err
		}
		list[i] = engine.Settlement{ID: id, Action: engine.Release, Delivery: received[i].Redeliveries + 1}
	}
	return c.engine.Settle(ctx, t.id, subscription, list)
}
