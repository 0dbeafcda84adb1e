package messaging

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
)

// ReceiveOptions configures Receive.
type ReceiveOptions struct {
	Max   int           // limit of messages; 0 means 1
	Wait  time.Duration // for the first message; capped at Limits.MaxWait
	Lease time.Duration // 0 means the subscription's lease
}

// Consumer is the part of a broker that manages subscriptions, delivers their messages and reads topics.
type Consumer struct {
	engine    consumerEngine
	catalogue *Catalogue
	topics    *engineTopics
	live      *liveTopics
	life      *lifecycle
	limits    *Limits
	quota     *quota.Cluster
	waiting   atomic.Int64 // callers that wait for messages
	// configuring serializes changes of the configuration of subscriptions, by topic id.
	configuring [16]sync.Mutex
}

// consumerEngine is the part of the engine that Consumer uses.
type consumerEngine interface {
	engine.Log
	engine.Subscriptions
}

// Receive leases messages of a subscription to the caller. It returns as soon as a message is
// available, and with none after the wait or when the broker drains. Messages that the caller does
// not settle before their lease ends are delivered again.
func (c *Consumer) Receive(ctx context.Context, name names.Topic, subscription string,
	opts ReceiveOptions,
) ([]Received, error) {
	t, err := c.catalogue.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := c.checkLease(opts.Lease); err != nil {
		return nil, err
	}
	if opts.Max < 0 || opts.Max > c.limits.MaxBatch {
		return nil, errs.Newf(errs.TooLarge, "%w: %d messages, at most %d", ErrBatch, opts.Max, c.limits.MaxBatch)
	}
	req := engine.ReceiveRequest{
		Max: max(opts.Max, 1), MaxBytes: c.limits.BatchBytes, Lease: opts.Lease, Partition: t.partition,
	}
	return c.receive(ctx, t, subscription, req, opts.Wait)
}

func (c *Consumer) checkLease(lease time.Duration) error {
	if lease != 0 && (lease < c.limits.MinLease || lease > c.limits.MaxLease) {
		return errs.Newf(errs.Invalid, "%w: acknowledgement timeout must be between %s and %s", engine.ErrInvalid,
			c.limits.MinLease, c.limits.MaxLease)
	}
	return nil
}

func (c *Consumer) receive(ctx context.Context, t target, subscription string, req engine.ReceiveRequest,
	wait time.Duration,
) ([]Received, error) {
	deliveries, err := onTopic(ctx, c.topics, t.id, func() ([]engine.Delivery, error) {
		return c.engine.Receive(ctx, t.id, subscription, req)
	})
	if err == nil && len(deliveries) == 0 && wait > 0 {
		req.Wait = min(wait, c.limits.MaxWait)
		deliveries, err = c.await(ctx, t.id, subscription, req)
	}
	if err != nil || len(deliveries) == 0 {
		return nil, t.damagedError(err)
	}
	live := c.live.of(t.id)
	sub := live.subscription(subscription)
	received := make([]Received, len(deliveries))
	for i := range deliveries {
		d := &deliveries[i]
		received[i] = c.received(t.topic, &d.Record)
		received[i].Redeliveries, received[i].LeasedUntil = d.Redeliveries, d.LeasedUntil
		received[i].ID.Redeliveries = d.Redeliveries
		live.out.add(len(d.Payload))
		sub.out.add(len(d.Payload))
	}
	return received, nil
}

// addWaiting counts a waiting caller, or returns ErrTooMany at the limit.
func (c *Consumer) addWaiting() error {
	if c.waiting.Add(1) > int64(c.limits.MaxWaiting) {
		c.waiting.Add(-1)
		return ErrTooMany
	}
	return nil
}

func (c *Consumer) removeWaiting() { c.waiting.Add(-1) }

// await waits for messages on the caller's goroutine. Only this path pays for a context that ends
// when the broker drains.
func (c *Consumer) await(ctx context.Context, id engine.TopicID, subscription string,
	req engine.ReceiveRequest,
) ([]engine.Delivery, error) {
	if c.life.draining.Err() != nil {
		return nil, nil
	}
	if err := c.addWaiting(); err != nil {
		return nil, err
	}
	defer c.removeWaiting()
	waiting, stop := c.life.untilDrain(ctx)
	defer stop()
	deliveries, err := c.engine.Receive(waiting, id, subscription, req)
	switch {
	case err == nil:
		return deliveries, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case c.life.draining.Err() != nil, errors.Is(err, engine.ErrClosed):
		return nil, nil // the caller's next request may reach another member
	}
	return nil, err
}

// SettleAction is what a consumer does with a message that it has on lease.
type SettleAction = engine.Action

// The actions of a Settlement.
const (
	Ack    = engine.Ack    // acknowledge the message
	AckTo  = engine.AckTo  // acknowledge the message and all before it on its partition
	Nack   = engine.Nack   // redeliver the message after Delay
	Extend = engine.Extend // extend the lease to Delay from now
)

// Settlement is one action on one message. The id of a redelivered message contains the number of
// the delivery: a Nack or Extend with such an id applies to that lease only. An id without
// redeliveries applies to the current lease (docs/spec/messages.md#m7).
type Settlement struct {
	ID     names.MessageID
	Action SettleAction
	Delay  time.Duration
}

// Settle applies settlements and returns once they are durable. An id of another topic, or a Nack
// or Extend without a lease (ErrLeaseEnded), fails the whole call and changes nothing.
// Acknowledging a message twice is no error.
func (c *Consumer) Settle(ctx context.Context, name names.Topic, subscription string, settlements ...Settlement) error {
	if len(settlements) == 0 || len(settlements) > c.limits.MaxBatch {
		return errs.Newf(errs.TooLarge, "%w: %d message ids, must be between 1 and %d", ErrBatch, len(settlements),
			c.limits.MaxBatch)
	}
	t, err := c.catalogue.resolve(ctx, name)
	if err != nil {
		return err
	}
	var buf [4]engine.Settlement
	list := buf[:0]
	for i := range settlements {
		s := &settlements[i]
		if err := c.checkDelay(s); err != nil {
			return err
		}
		id, err := t.engineID(s.ID)
		if err != nil {
			return err
		}
		st := engine.Settlement{ID: id, Action: s.Action, Delay: s.Delay}
		if s.ID.Redeliveries > 0 {
			st.Delivery = s.ID.Redeliveries + 1
		}
		list = append(list, st)
	}
	if err := c.engine.Settle(ctx, t.id, subscription, list); err != nil {
		return err
	}
	c.settled(t.id, subscription, list)
	return nil
}

func (c *Consumer) checkDelay(s *Settlement) error {
	switch s.Action {
	case Extend:
		if s.Delay == 0 {
			return errs.Newf(errs.Invalid, "%w: extending needs an acknowledgement timeout", engine.ErrInvalid)
		}
		return c.checkLease(s.Delay)
	case Nack:
		if s.Delay < 0 || s.Delay > c.limits.MaxDelay {
			return errs.Newf(errs.Invalid, "%w: delay must be between 0 and %s", engine.ErrInvalid, c.limits.MaxDelay)
		}
	}
	return nil
}

// settled counts acknowledgements and returns credits to the subscription's push consumers.
func (c *Consumer) settled(id engine.TopicID, subscription string, list []engine.Settlement) {
	sub := c.live.of(id).subscription(subscription)
	for i := range list {
		if list[i].Action == Ack || list[i].Action == AckTo {
			sub.acks.add(0)
		}
	}
	if sub.openConsumers.Load() == 0 {
		return
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for s := range sub.consumers {
		s.onSettled(list)
	}
}
