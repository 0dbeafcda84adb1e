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

// Statistics is the part of a broker that reports statistics of topics and the usage of the cluster.
type Statistics struct {
	engine    engine.Statistics
	catalogue *Catalogue
	live      *liveTopics
	consumer  *Consumer // for the number of waiting callers
	limits    *Limits
}

// Stats returns the statistics of a topic or partition.
func (st *Statistics) Stats(ctx context.Context, name names.Topic) (Stats, error) {
	t, described, err := st.catalogue.describeFresh(ctx, name)
	if err != nil {
		return Stats{}, err
	}
	at, live := time.Now(), st.live.of(t.id)
	r := st.catalogue.state.View().rules(t.topic, st.limits)
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
