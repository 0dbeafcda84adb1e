package messaging

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"freshet/internal/engine"
	"freshet/internal/errs"
	"freshet/internal/names"
)

// Names of subscription properties that the broker acts upon; all others are
// kept and given back.
const (
	PropertyMaxRedeliver    = "maxRedeliverCount"
	PropertyDeadLetterTopic = "deadLetterTopic"
	PropertyAckTimeout      = "ackTimeoutMillis"
)

// Position says where a subscription starts or is moved to.
type Position struct {
	Kind PositionKind
	ID   names.MessageID // AtID and AfterID
	Time time.Time       // AtTime and ExpiredBefore
	N    uint64          // Skip
}

// PositionKind says how to read a Position.
type PositionKind = engine.PositionKind

// The kinds of position.
const (
	Latest        = engine.Latest
	Earliest      = engine.Earliest
	AtID          = engine.AtID
	AfterID       = engine.AfterID
	AtTime        = engine.AtTime
	Skip          = engine.SkipN    // past N unacknowledged messages; only of an existing subscription
	ExpiredBefore = engine.SkipTime // past what was published before Time; only of an existing subscription
)

func (t target) position(p Position) (engine.Position, error) {
	out := engine.Position{Kind: p.Kind, Time: p.Time, Count: p.N}
	if p.Kind != AtID && p.Kind != AfterID {
		return out, nil
	}
	switch {
	case p.ID.IsEarliest():
		return engine.Position{Kind: Earliest}, nil
	case p.ID.IsLatest():
		return engine.Position{Kind: Latest}, nil
	}
	id, err := t.engineID(p.ID)
	if err != nil {
		return out, errs.Newf(errs.Precondition, "%w: %w", ErrNoPosition, err)
	}
	out.ID = id
	return out, nil
}

// Subscribe creates a subscription, and its topic when the namespace allows.
func (b *Broker) Subscribe(ctx context.Context, name names.Topic, subscription string, at Position, properties map[string]string) error {
	if err := names.CheckSubscription(subscription); err != nil {
		return errs.Newf(errs.Invalid, "%w: %w", ErrName, err)
	}
	policy, err := b.parsePolicy(properties)
	if err != nil {
		return err
	}
	t, err := b.autoCreate(ctx, name)
	if err != nil {
		return err
	}
	position, err := t.position(at)
	if err != nil {
		return err
	}
	stats, err := b.describe(ctx, t.topic)
	if err != nil {
		return err
	}
	if len(stats.Subscriptions) >= b.limits.Subscriptions {
		return errs.Newf(errs.Precondition, "%w: a topic may have %d subscriptions", ErrTopicLimit, b.limits.Subscriptions)
	}
	for i := range stats.Subscriptions {
		if stats.Subscriptions[i].Name == subscription {
			return ErrSubscriptionExists // before a dead-letter topic is made in vain
		}
	}
	config, err := b.subscriptionConfig(ctx, t.topic, subscription, policy, properties)
	if err != nil {
		return err
	}
	err = b.withTopic(ctx, t.id, func() error {
		return b.engine.CreateSubscription(ctx, t.id, subscription, config, position)
	})
	return positionError(err)
}

// positionError gives an engine's complaint about an id its name here.
func positionError(err error) error {
	if errors.Is(err, engine.ErrForeignID) || errors.Is(err, engine.ErrNoMessage) || errors.Is(err, engine.ErrNoPartition) {
		return errs.Newf(errs.Precondition, "%w: %w", ErrNoPosition, err)
	}
	return err
}

// consumerPolicy is what a subscription's properties ask of the broker.
type consumerPolicy struct {
	lease        time.Duration
	deadLetters  bool
	redeliveries uint32
	topic        string // for dead letters; "" for the default
}

const maxRedeliveries = 1_000_000

func (b *Broker) parsePolicy(properties map[string]string) (consumerPolicy, error) {
	var p consumerPolicy
	if err := checkProperties(properties); err != nil {
		return p, err
	}
	if text, ok := properties[PropertyAckTimeout]; ok {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms < 1 || ms > b.limits.MaxLease.Milliseconds() {
			return p, errs.Newf(errs.Invalid, "%w: %s must be a number of milliseconds up to %d", ErrPolicy, PropertyAckTimeout, b.limits.MaxLease.Milliseconds())
		}
		p.lease = time.Duration(ms) * time.Millisecond
		if err := b.checkLease(p.lease); err != nil {
			return p, err
		}
	}
	p.topic = properties[PropertyDeadLetterTopic]
	if text, ok := properties[PropertyMaxRedeliver]; ok {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n > maxRedeliveries {
			return p, errs.Newf(errs.Invalid, "%w: %s must be a number up to %d", ErrPolicy, PropertyMaxRedeliver, maxRedeliveries)
		}
		p.deadLetters, p.redeliveries = true, uint32(n)
	} else if p.topic != "" {
		return p, errs.Newf(errs.Invalid, "%w: %s needs %s", ErrPolicy, PropertyDeadLetterTopic, PropertyMaxRedeliver)
	}
	return p, nil
}

// subscriptionConfig makes the engine's form of a policy. It creates the topic
// for dead letters, by default <topic>-<subscription>-DLQ as in Pulsar.
func (b *Broker) subscriptionConfig(ctx context.Context, t *topic, subscription string, p consumerPolicy, properties map[string]string) (engine.SubscriptionConfig, error) {
	config := engine.SubscriptionConfig{Lease: p.lease, Properties: maps.Clone(properties)}
	if !p.deadLetters {
		return config, nil
	}
	name := names.Topic{Namespace: t.name.Namespace, Local: t.name.Local + "-" + subscription + "-DLQ"}
	if p.topic != "" {
		var err error
		if name, err = names.ParseTopic(p.topic); err != nil {
			return config, errs.Newf(errs.Invalid, "%w: %s: %w", ErrPolicy, PropertyDeadLetterTopic, err)
		}
		if name.Namespace != t.name.Namespace {
			return config, errs.Newf(errs.Invalid, "%w: %s must be in the topic's own namespace", ErrPolicy, PropertyDeadLetterTopic)
		}
	}
	letters, err := b.create(ctx, name, true, func(*namespace) (topicRecord, error) { return topicRecord{}, nil })
	if err != nil {
		return config, fmt.Errorf("creating the dead-letter topic %s: %w", name, err)
	}
	if letters.id == t.id || letters.partitions > 0 {
		return config, errs.Newf(errs.Invalid, "%w: %s must be another topic, without partitions", ErrPolicy, PropertyDeadLetterTopic)
	}
	config.DeadLetterTopic, config.MaxDeliveries = letters.id, p.redeliveries+1
	return config, nil
}

// Subscriptions returns the names of a topic's subscriptions in order.
func (b *Broker) Subscriptions(ctx context.Context, name names.Topic) ([]string, error) {
	_, stats, err := b.describeFresh(ctx, name)
	if err != nil {
		return nil, err
	}
	list := make([]string, 0, len(stats.Subscriptions))
	for i := range stats.Subscriptions {
		list = append(list, stats.Subscriptions[i].Name)
	}
	return list, nil
}

// SubscriptionProperties returns the properties of a subscription.
func (b *Broker) SubscriptionProperties(ctx context.Context, name names.Topic, subscription string) (map[string]string, error) {
	_, stats, err := b.describeSubscription(ctx, name, subscription)
	if err != nil {
		return nil, err
	}
	return stats.Config.Properties, nil
}

// SetSubscriptionProperties replaces the properties of a subscription and acts
// upon those it knows.
func (b *Broker) SetSubscriptionProperties(ctx context.Context, name names.Topic, subscription string, properties map[string]string) error {
	policy, err := b.parsePolicy(properties)
	if err != nil {
		return err
	}
	t, _, err := b.describeSubscription(ctx, name, subscription)
	if err != nil {
		return err
	}
	config, err := b.subscriptionConfig(ctx, t.topic, subscription, policy, properties)
	if err != nil {
		return err
	}
	return b.engine.ConfigureSubscription(ctx, t.id, subscription, config)
}

// Unsubscribe deletes a subscription. Without force, one that consumers wait on
// stays (ErrSubscriptionBusy).
func (b *Broker) Unsubscribe(ctx context.Context, name names.Topic, subscription string, force bool) error {
	t, stats, err := b.describeSubscription(ctx, name, subscription)
	if err != nil {
		return err
	}
	if !force && stats.Waiting > 0 {
		return ErrSubscriptionBusy
	}
	if err := b.engine.DeleteSubscription(ctx, t.id, subscription); err != nil {
		return err
	}
	b.liveOf(t.id).endSubscription(subscription, ErrNoSubscription)
	return nil
}

// Reset moves a subscription.
func (b *Broker) Reset(ctx context.Context, name names.Topic, subscription string, at Position) error {
	t, err := b.resolve(ctx, name)
	if err != nil {
		return err
	}
	if at.Kind == Skip && t.partitions > 0 {
		return ErrPartitioned
	}
	position, err := t.position(at)
	if err != nil {
		return err
	}
	err = b.withTopic(ctx, t.id, func() error {
		return b.engine.ResetSubscription(ctx, t.id, subscription, position)
	})
	return positionError(err)
}
