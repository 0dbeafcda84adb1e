package messaging

import (
	"context"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

const (
	peekPage = 256
	peekMax  = 10_000
)

// singlePartition returns the partition of a call that needs exactly one. It returns ErrPartitioned for a
// partitioned topic as a whole.
func (t target) singlePartition() (int32, error) {
	if t.partition >= 0 {
		return t.partition, nil
	}
	if t.partitions > 0 {
		return 0, ErrPartitioned
	}
	return 0, nil
}

// Peek returns the nth unacknowledged message of a subscription, counted from 1, without leasing
// it.
func (b *Broker) Peek(ctx context.Context, name names.Topic, subscription string, n int) (Received, error) {
	t, err := b.resolve(ctx, name)
	if err != nil {
		return Received{}, err
	}
	p, err := t.singlePartition()
	if err != nil {
		return Received{}, err
	}
	if n < 1 || n > peekMax {
		return Received{}, errs.Newf(errs.Invalid, "%w: position must be between 1 and %d", engine.ErrInvalid, peekMax)
	}
	req := engine.ReadRequest{Partition: p, Subscription: subscription, MaxBytes: b.limits.BatchBytes}
	for {
		req.Max = min(n, peekPage)
		records, err := b.read(ctx, t.id, req)
		if err != nil {
			return Received{}, t.damagedError(err)
		}
		if len(records) == 0 {
			return Received{}, ErrNoMessage
		}
		if n <= len(records) {
			return b.received(t.topic, &records[n-1]), nil
		}
		n -= len(records)
		req.From = records[len(records)-1].ID.Entry + 1
	}
}

// Message returns the message with the given id.
func (b *Broker) Message(ctx context.Context, name names.Topic, id names.MessageID) (Received, error) {
	t, err := b.resolve(ctx, name)
	if err != nil {
		return Received{}, err
	}
	at, err := t.engineID(id)
	if err != nil {
		return Received{}, err
	}
	records, err := b.read(ctx, t.id, engine.ReadRequest{Partition: at.Partition, From: at.Entry, Max: 1})
	if err != nil {
		return Received{}, t.damagedError(err)
	}
	if len(records) == 0 || records[0].ID.Entry != at.Entry {
		return Received{}, ErrNoMessage
	}
	return b.received(t.topic, &records[0]), nil
}

// MessageIDAt returns the id of the first message published at or after a time.
func (b *Broker) MessageIDAt(ctx context.Context, name names.Topic, since time.Time) (names.MessageID, error) {
	t, err := b.resolve(ctx, name)
	if err != nil {
		return names.MessageID{}, err
	}
	p, err := t.singlePartition()
	if err != nil {
		return names.MessageID{}, err
	}
	records, err := b.read(ctx, t.id, engine.ReadRequest{Partition: p, Since: since, Max: 1})
	if err != nil {
		return names.MessageID{}, t.damagedError(err)
	}
	if len(records) == 0 {
		return names.MessageID{}, ErrNoMessage
	}
	return t.messageID(records[0].ID), nil
}

func (b *Broker) read(ctx context.Context, id engine.TopicID,
	req engine.ReadRequest,
) (records []engine.Record, err error) {
	err = b.withTopic(ctx, id, func() (err error) {
		records, err = b.engine.Read(ctx, id, req)
		return err
	})
	return records, err
}
