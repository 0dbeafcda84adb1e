package messaging

import (
	"context"
	"errors"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// Tail reads new messages of a topic without a subscription.
type Tail struct {
	consumer *Consumer
	target   target
	first    int32
	next     []uint64 // entry to read next, by partition starting at first
	// subscription, if set, limits the tail to messages that this subscription has not acknowledged.
	subscription string
}

// TailFrom is the start of a tail: after an id, at a time, at the first stored message, at the newest messages,
// or, by default, after the last message.
type TailFrom struct {
	Earliest bool
	Newest   int // number of messages
	Since    time.Time
	After    *names.MessageID
}

// Tail opens a tail. It needs no Close.
func (c *Consumer) Tail(ctx context.Context, name names.Topic, from TailFrom) (*Tail, error) {
	t, stats, err := c.catalogue.describeFresh(ctx, name)
	if err != nil {
		return nil, err
	}
	tail := &Tail{consumer: c, target: t}
	parts := stats.Partitions
	if t.partition >= 0 {
		tail.first = t.partition
		if int(t.partition) < len(parts) {
			parts = parts[t.partition : t.partition+1]
		} else {
			// The engine does not have the partition yet, so its first message will be entry 0.
			parts = make([]engine.PartitionStats, 1)
		}
	}
	for i := range parts {
		next := parts[i].Next
		if from.Earliest {
			next = parts[i].First
		}
		tail.next = append(tail.next, next)
	}
	if from.Newest > 0 && len(parts) > 0 {
		if err := tail.seekNewest(ctx, parts, from.Newest); err != nil {
			return nil, err
		}
	}
	if !from.Since.IsZero() {
		if err := tail.seek(ctx, from.Since); err != nil {
			return nil, err
		}
	}
	if from.After != nil {
		if err := tail.resume(ctx, *from.After); err != nil {
			return nil, err
		}
	}
	return tail, nil
}

// resume continues after a message. On the other partitions it continues with the messages
// published at the same time or later; messages of the same millisecond may be delivered again.
func (t *Tail) resume(ctx context.Context, last names.MessageID) error {
	id, err := t.target.engineID(last)
	if err != nil {
		return err
	}
	if len(t.next) > 1 {
		req := engine.ReadRequest{Partition: id.Partition, From: id.Entry, Max: 1}
		records, err := t.consumer.read(ctx, t.target.id, req)
		if err != nil && !errors.Is(err, engine.ErrCorrupt) { // the tail may continue after a damaged message
			return err
		}
		if len(records) > 0 {
			if err := t.seek(ctx, time.UnixMilli(records[0].PublishTime)); err != nil {
				return err
			}
		}
	}
	t.advancePast(id)
	return nil
}

// advancePast continues after a message. The message may belong to a partition that was added since the
// tail began.
func (t *Tail) advancePast(id engine.MessageID) {
	part := int(id.Partition - t.first)
	for part >= len(t.next) {
		t.next = append(t.next, 0)
	}
	t.next[part] = id.Entry + 1
}

// rewind continues before records that were read and not used.
func (t *Tail) rewind(unused []engine.Record) {
	for i := len(unused) - 1; i >= 0; i-- {
		t.next[unused[i].ID.Partition-t.first] = unused[i].ID.Entry
	}
}

// seek moves each partition to the first message published at or after a time. A partition without
// such a message keeps its position.
func (t *Tail) seek(ctx context.Context, since time.Time) error {
	for i := range t.next {
		req := engine.ReadRequest{Partition: t.first + int32(i), Since: since, Max: 1}
		records, err := t.consumer.read(ctx, t.target.id, req)
		if err != nil {
			return err
		}
		if len(records) > 0 {
			t.next[i] = records[0].ID.Entry
		}
	}
	return nil
}

// Next returns the messages since the last call and waits for the first one. It returns none after
// the wait, and ErrClosing when the broker drains.
func (t *Tail) Next(ctx context.Context, wait time.Duration) ([]Received, error) {
	return t.untilDrain(ctx, func(waiting context.Context) ([]Received, error) { return t.read(waiting, wait) })
}

// untilDrain calls read as one of the waiting callers. It returns ErrClosing when the broker drains.
func (t *Tail) untilDrain(ctx context.Context, read func(context.Context) ([]Received, error)) ([]Received, error) {
	if err := t.consumer.addWaiting(); err != nil {
		return nil, err
	}
	defer t.consumer.removeWaiting()
	waiting, stop := t.consumer.life.untilDrain(ctx)
	defer stop()
	received, err := read(waiting)
	if err != nil && ctx.Err() == nil && (t.consumer.life.draining.Err() != nil || errors.Is(err, engine.ErrClosed)) {
		return nil, ErrClosing
	}
	return received, err
}

func (t *Tail) read(ctx context.Context, wait time.Duration) ([]Received, error) {
	records, err := t.records(ctx, wait)
	if err != nil {
		return nil, t.target.damagedError(err)
	}
	var out []Received
	for i := range records {
		out = append(out, t.consumer.received(t.target.topic, &records[i]))
	}
	return out, nil
}

// records reads stored messages and continues after them. It waits for the first one.
func (t *Tail) records(ctx context.Context, wait time.Duration) ([]engine.Record, error) {
	req := engine.ReadRequest{
		Partition: t.target.partition, From: t.next[0], FromEach: t.next, Subscription: t.subscription,
		Max: deliveryBatch, MaxBytes: t.consumer.limits.MessageBytes, Wait: wait,
	}
	records, err := t.consumer.read(ctx, t.target.id, req)
	for i := range records {
		t.advancePast(records[i].ID)
	}
	return records, err
}
