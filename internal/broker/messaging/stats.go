package messaging

import (
	"context"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// Flow is the traffic since the broker opened, and its rate.
type Flow struct {
	Messages, Bytes         int64
	MessageRate, ByteRate   float64 // per second, see meter.rates
	RedeliveredSinceRestart uint64  // subscriptions only
}

func (m *meter) flow(at time.Time) Flow {
	f := Flow{Messages: m.messages.Load(), Bytes: m.bytes.Load()}
	f.MessageRate, f.ByteRate = m.rates(at)
	return f
}

// Stats are the statistics of a topic, or of one partition of it.
type Stats struct {
	Topic         Topic
	Deduplicates  bool
	In, Out       Flow
	Partitions    []engine.PartitionStats // only one for the name of a partition
	Subscriptions []SubscriptionStats
}

// SubscriptionStats are the statistics of a subscription.
type SubscriptionStats struct {
	engine.SubscriptionStats
	Out  Flow
	Acks Flow
}

// Bytes returns the stored bytes of the topic.
func (s *Stats) Bytes() (n int64) {
	for i := range s.Partitions {
		n += s.Partitions[i].Bytes
	}
	return n
}

// Stats returns the statistics of a topic or partition.
func (b *Broker) Stats(ctx context.Context, name names.Topic) (Stats, error) {
	t, described, err := b.describeFresh(ctx, name)
	if err != nil {
		return Stats{}, err
	}
	at, live := time.Now(), b.liveOf(t.id)
	r := b.catalogue.View().rules(t.topic, &b.limits)
	out := Stats{
		Topic: t.describe(), Deduplicates: r.deduplicate,
		In: live.in.flow(at), Out: live.out.flow(at),
		Partitions: described.Partitions,
	}
	for i := range described.Subscriptions {
		s := SubscriptionStats{SubscriptionStats: described.Subscriptions[i]}
		sub := live.subscription(s.Name)
		s.Out, s.Acks = sub.out.flow(at), sub.acks.flow(at)
		s.Out.RedeliveredSinceRestart = s.Redelivered
		out.Subscriptions = append(out.Subscriptions, s)
	}
	if t.partition >= 0 {
		return out.OfPartition(t.partition), nil
	}
	return out, nil
}

// OfPartition narrows the statistics down to one partition as far as possible: flows and leases are counted
// per topic. A partition that the catalogue has and the engine lacks is empty.
func (s *Stats) OfPartition(partition int32) Stats {
	out := *s
	out.Topic.Partition = partition
	exists := int(partition) < len(s.Partitions)
	var p engine.PartitionStats
	if exists {
		p = s.Partitions[partition]
	}
	out.Partitions = []engine.PartitionStats{p}
	out.Subscriptions = make([]SubscriptionStats, len(s.Subscriptions))
	for i := range s.Subscriptions {
		sub := s.Subscriptions[i]
		var c engine.CursorStats
		if int(partition) < len(sub.Cursors) {
			c = sub.Cursors[partition]
		}
		sub.Cursors = []engine.CursorStats{c}
		// The engine may have moved the cursor after it described the partition.
		sub.Backlog = p.Next - min(p.Next, max(c.Floor, p.First)+c.Acked)
		if !exists {
			sub.BacklogBytes, sub.Leased, sub.Delayed = 0, 0, 0
		}
		out.Subscriptions[i] = sub
	}
	return out
}

// describe returns the engine's statistics of a topic.
func (b *Broker) describe(ctx context.Context, t *topic) (stats engine.TopicStats, err error) {
	err = b.withTopic(ctx, t.id, func() (err error) {
		stats, err = b.engine.DescribeTopic(ctx, t.id)
		return err
	})
	return stats, err
}

// describeFresh resolves a name on an up-to-date catalogue and returns the engine's statistics.
func (b *Broker) describeFresh(ctx context.Context, name names.Topic) (target, engine.TopicStats, error) {
	t, err := b.fresh(ctx, name)
	if err != nil {
		return t, engine.TopicStats{}, err
	}
	stats, err := b.describe(ctx, t.topic)
	return t, stats, err
}

func (b *Broker) describeSubscription(ctx context.Context, name names.Topic,
	subscription string,
) (target, engine.SubscriptionStats, error) {
	t, stats, err := b.describeFresh(ctx, name)
	if err != nil {
		return t, engine.SubscriptionStats{}, err
	}
	for i := range stats.Subscriptions {
		if stats.Subscriptions[i].Name == subscription {
			return t, stats.Subscriptions[i], nil
		}
	}
	return t, engine.SubscriptionStats{}, ErrNoSubscription
}

// LastMessageID returns the id of the message that was published last. Its entry is -1 when the
// topic is empty.
func (b *Broker) LastMessageID(ctx context.Context, name names.Topic) (names.MessageID, error) {
	t, stats, err := b.describeFresh(ctx, name)
	if err != nil {
		return names.MessageID{}, err
	}
	best, at := -1, int64(-1)
	for i, p := range stats.Partitions {
		if (t.partition < 0 || int(t.partition) == i) && p.Next > 0 && p.LastPublish > at {
			best, at = i, p.LastPublish
		}
	}
	if best < 0 {
		id := t.messageID(engine.MessageID{Topic: t.id, Partition: max(t.partition, 0)})
		id.Entry = -1
		return id, nil
	}
	return t.messageID(engine.MessageID{Topic: t.id, Partition: int32(best), Entry: stats.Partitions[best].Next - 1}),
		nil
}
