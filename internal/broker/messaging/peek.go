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
func (c *Consumer) Peek(ctx context.Context, name names.Topic, subscription string, n int) (Received, error) {
	t, err := c.catalogue.resolve(ctx, name)
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
	req := engine.ReadRequest{Partition: p, Subscription: subscription, MaxBytes: c.limits.BatchBytes}
	for {
		req.Max = min(n, peekPage)
		records, err := c.read(ctx, t.id, req)
		if err != nil {
			return Received{}, t.damagedError(err)
		}
		if len(records) == 0 {
			return Received{}, ErrNoMessage
		}
		if n <= len(records) {
			return c.received(t.topic, &records[n-1]), nil
		}
		n -= len(records)
		req.From = records[len(records)-1].ID.Entry + 1
	}
}

// Message returns the message with the given id.
func (c *Consumer) Message(ctx context.Context, name names.Topic, id names.MessageID) (Received, error) {
	t, err := c.catalogue.resolve(ctx, name)
	if err != nil {
		return Received{}, err
	}
	at, err := t.engineID(id)
	if err != nil {
		return Received{}, err
	}
	records, err := c.read(ctx, t.id, engine.ReadRequest{Partition: at.Partition, From: at.Entry, Max: 1})
	if err != nil {
		return Received{}, t.damagedError(err)
	}
	if len(records) == 0 || records[0].ID.Entry != at.Entry {
		return Received{}, ErrNoMessage
	}
	return c.received(t.topic, &records[0]), nil
}

// MessageIDAt returns the id of the first message published at or after a time.
func (c *Consumer) MessageIDAt(ctx context.Context, name names.Topic, since time.Time) (names.MessageID, error) {
	t, err := c.catalogue.resolve(ctx, name)
	if err != nil {
		return names.MessageID{}, err
	}
	p, err := t.singlePartition()
	if err != nil {
		return names.MessageID{}, err
	}
	records, err := c.read(ctx, t.id, engine.ReadRequest{Partition: p, Since: since, Max: 1})
	if err != nil {
		return names.MessageID{}, t.damagedError(err)
	}
	if len(records) == 0 {
		return names.MessageID{}, ErrNoMessage
	}
	return t.messageID(records[0].ID), nil
}

func (c *Consumer) read(ctx context.Context, id engine.TopicID,
	req engine.ReadRequest,
) ([]engine.Record, error) {
	return onTopic(ctx, c.topics, id, func() ([]engine.Record, error) { return c.engine.Read(ctx, id, req) })
}

// LastMessageID returns the id of the message that was published last. Its entry is -1 when the
// topic is empty.
func (c *Consumer) LastMessageID(ctx context.Context, name names.Topic) (names.MessageID, error) {
	t, stats, err := c.catalogue.describeFresh(ctx, name)
	if err != nil {
		return names.MessageID{}, err
	}
	return t.lastMessage(&stats), nil
}

// lastMessage returns the id of the message that was published last according to the engine's
// statistics. Its entry is -1 when there is none.
func (t target) lastMessage(stats *engine.TopicStats) names.MessageID {
	best, at := -1, int64(-1)
	for i, p := range stats.Partitions {
		if (t.partition < 0 || int(t.partition) == i) && p.Next > 0 && p.LastPublish > at {
			best, at = i, p.LastPublish
		}
	}
	if best < 0 {
		id := t.messageID(engine.MessageID{Topic: t.id, Partition: max(t.partition, 0)})
		id.Entry = -1
		return id
	}
	return t.messageID(engine.MessageID{Topic: t.id, Partition: int32(best), Entry: stats.Partitions[best].Next - 1})
}
