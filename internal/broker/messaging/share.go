package messaging

import (
	"context"
	"errors"
	"strconv"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// Shares is the part of a broker that share groups of the Kafka protocol use. The share group G of a topic is the
// subscription G of that topic: consumers over HTTP and members of the group share its messages.
type Shares struct {
	consumer *Consumer
	engine   engine.Subscriptions
	usage    engine.Statistics
}

// ShareRequest is a request for messages of one partition.
type ShareRequest struct {
	Partition int32
	Max       int           // messages; at least 1
	MaxBytes  int           // of payloads, keys and properties
	Wait      time.Duration // for the first message; capped at Limits.MaxWait
	Lease     time.Duration // 0 means the subscription's lease
}

// GroupConfig returns the configuration of a share group according to the cached catalogue of this member.
func (s *Shares) GroupConfig(tenant, group string) GroupConfig {
	return groupConfigOf(s.consumer.catalogue.state.View().groupConfigs(tenant, group))
}

// Ensure creates the subscription of a share group on a topic if it does not exist, and applies the group's limit of
// deliveries.
func (s *Shares) Ensure(ctx context.Context, t *KafkaTopic, tenant, group string) error {
	config := s.GroupConfig(tenant, group)
	want := map[string]string{}
	if config.MaxDeliveries > 0 {
		want[PropertyMaxRedeliver] = strconv.Itoa(config.MaxDeliveries - 1)
	}
	policy, err := s.consumer.parsePolicy(want)
	if err != nil {
		return err
	}
	at := target{topic: t.topic, partition: engine.AllPartitions}
	err = s.consumer.subscribe(ctx, at, group, config.start(), policy, want)
	if err == nil || !errors.Is(err, ErrSubscriptionExists) {
		return err
	}
	if config.MaxDeliveries == 0 {
		return nil
	}
	has, err := s.consumer.SubscriptionProperties(ctx, t.topic.name, group)
	if err != nil || has[PropertyMaxRedeliver] == want[PropertyMaxRedeliver] {
		return err
	}
	merged := map[string]string{}
	for name, value := range has {
		merged[name] = value
	}
	merged[PropertyMaxRedeliver] = want[PropertyMaxRedeliver]
	return s.consumer.SetSubscriptionProperties(ctx, t.topic.name, group, merged)
}

// Acquire leases messages of one partition to a member of a share group. It returns as soon as a message is available,
// and with none after the wait or when the broker drains.
func (s *Shares) Acquire(ctx context.Context, t *KafkaTopic, group string,
	req ShareRequest,
) ([]engine.Delivery, error) {
	c := s.consumer
	lease := engine.ReceiveRequest{
		Partition: req.Partition, Max: req.Max, MaxBytes: req.MaxBytes, Lease: req.Lease,
	}
	got, err := onTopic(ctx, c.topics, t.topic.id, func() ([]engine.Delivery, error) {
		return s.engine.Receive(ctx, t.topic.id, group, lease)
	})
	if err == nil && len(got) == 0 && req.Wait > 0 {
		lease.Wait = min(req.Wait, c.limits.MaxWait)
		got, err = c.await(ctx, t.topic.id, group, lease)
	}
	return got, err
}

// Settle settles leases of a share group, all or none. Messages that are accepted or rejected are so durably.
func (s *Shares) Settle(ctx context.Context, t *KafkaTopic, group string, settlements []engine.Settlement) error {
	if err := s.engine.Settle(ctx, t.topic.id, group, settlements); err != nil {
		return err
	}
	sub := t.live.subscription(group)
	for i := range settlements {
		if a := settlements[i].Action; a == engine.Accept || a == engine.Reject {
			sub.acks.add(0)
		}
	}
	return nil
}

// CountDelivered adds deliveries to the meters of a topic and its subscription.
func (s *Shares) CountDelivered(t *KafkaTopic, group string, messages, bytes int) {
	t.live.out.addMany(messages, bytes)
	t.live.subscription(group).out.addMany(messages, bytes)
}

// ShareOffset is the position of a share group in one partition.
type ShareOffset struct {
	Start uint64 // every message before it is acknowledged
	Lag   uint64 // messages that are not acknowledged
}

// Offsets returns the positions of every subscription of a topic, by subscription and partition.
func (s *Shares) Offsets(ctx context.Context, t *KafkaTopic) (map[string][]ShareOffset, error) {
	if s.hasNoSubscription(ctx, t) {
		return nil, nil
	}
	stats, err := s.consumer.topics.describe(ctx, t.topic)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]ShareOffset, len(stats.Subscriptions))
	for i := range stats.Subscriptions {
		sub := &stats.Subscriptions[i]
		offsets := make([]ShareOffset, min(len(sub.Cursors), len(stats.Partitions)))
		for p := range offsets {
			at, part := sub.Cursors[p], stats.Partitions[p]
			start := max(at.Floor, part.First)
			offsets[p] = ShareOffset{Start: start, Lag: part.Next - min(part.Next, start+at.Acked)}
		}
		all[sub.Name] = offsets
	}
	return all, nil
}

// hasNoSubscription reports whether a topic is known to have no subscription. It loads no topic.
func (s *Shares) hasNoSubscription(ctx context.Context, t *KafkaTopic) (none bool) {
	_ = s.usage.UsageOf(ctx, []engine.TopicID{t.topic.id}, func(u engine.Usage) { none = u.Subscriptions == 0 })
	return none
}

// Seek moves the position of a share group in one partition.
func (s *Shares) Seek(ctx context.Context, t *KafkaTopic, group string, partition int32, offset uint64) error {
	at := engine.Position{
		Kind: engine.AtID, ID: engine.MessageID{Topic: t.topic.id, Partition: partition, Entry: offset},
	}
	return s.consumer.topics.withTopic(ctx, t.topic.id, func() error {
		return s.engine.ResetSubscription(ctx, t.topic.id, group, at)
	})
}

// Delete deletes the subscription of a share group on a topic. It returns ErrSubscriptionBusy while consumers wait on
// it.
func (s *Shares) Delete(ctx context.Context, t *KafkaTopic, group string) error {
	return s.consumer.Unsubscribe(ctx, t.topic.name, group, false)
}

// Forget removes the configurations of a share group that has no subscriptions any more.
func (s *Shares) Forget(ctx context.Context, tenant, group string) error {
	return s.dropGroupConfig(ctx, tenant, group)
}

// CheckShareGroup returns an error unless a group id can be the name of a subscription.
func CheckShareGroup(group string) error { return names.CheckSubscription(group) }
