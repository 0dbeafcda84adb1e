package messaging

import (
	"context"
	"errors"
	"maps"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
)

// Subscription properties that the broker acts on. It stores all others and returns them unchanged.
const (
	PropertyMaxRedeliver    = "maxRedeliverCount"
	PropertyDeadLetterTopic = "deadLetterTopic"
	PropertyAckTimeout      = "ackTimeoutMillis"
	PropertyFilter          = "filter" // an expression; "" is the same as none
)

// Position is the start of a subscription, or the target of a reset.
type Position struct {
	Kind PositionKind
	ID   names.MessageID // AtID and AfterID
	Time time.Time       // AtTime and ExpiredBefore
	N    uint64          // Skip
}

// PositionKind is the kind of a Position.
type PositionKind = engine.PositionKind

// The kinds of position.
const (
	Latest        = engine.Latest
	Earliest      = engine.Earliest
	AtID          = engine.AtID
	AfterID       = engine.AfterID
	AtTime        = engine.AtTime
	Skip          = engine.SkipN    // skip N unacknowledged messages; existing subscriptions only
	ExpiredBefore = engine.SkipTime // skip messages published before Time; existing subscriptions only
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

// Subscribe creates a subscription, and its topic if the namespace allows automatic creation.
func (c *Consumer) Subscribe(ctx context.Context, name names.Topic, subscription string, at Position,
	properties map[string]string,
) error {
	if err := names.CheckSubscription(subscription); err != nil {
		return errs.Newf(errs.Invalid, "%w: %w", ErrName, err)
	}
	policy, err := c.parsePolicy(properties)
	if err != nil {
		return err
	}
	t, err := c.catalogue.autoCreate(ctx, name)
	if err != nil {
		return err
	}
	return c.subscribe(ctx, t, subscription, at, policy, properties)
}

// subscribe creates a subscription of an existing topic.
func (c *Consumer) subscribe(ctx context.Context, t target, subscription string, at Position, policy consumerPolicy,
	properties map[string]string,
) error {
	position, err := t.position(at)
	if err != nil {
		return err
	}
	stats, err := c.topics.describe(ctx, t.topic)
	if err != nil {
		return err
	}
	if len(stats.Subscriptions) >= c.limits.Subscriptions {
		return errs.Newf(errs.Precondition, "%w: a topic may have %d subscriptions", ErrTopicLimit,
			c.limits.Subscriptions)
	}
	for i := range stats.Subscriptions {
		if stats.Subscriptions[i].Name == subscription {
			return ErrSubscriptionExists // before subscriptionConfig creates a dead-letter topic
		}
	}
	config, err := c.subscriptionConfig(ctx, t.topic, subscription, policy, properties)
	if err != nil {
		return err
	}
	reservation, err := c.quota.Reserve(ctx, quota.Subscriptions, 1)
	if err != nil {
		return err
	}
	defer reservation.Release()
	err = c.topics.withTopic(ctx, t.id, func() error {
		return c.engine.CreateSubscription(ctx, t.id, subscription, config, position)
	})
	return positionError(err)
}

// positionError converts the engine's errors about a message id to ErrNoPosition.
func positionError(err error) error {
	if errors.Is(err, engine.ErrForeignID) || errors.Is(err, engine.ErrNoMessage) ||
		errors.Is(err, engine.ErrNoPartition) {
		return errs.Newf(errs.Precondition, "%w: %w", ErrNoPosition, err)
	}
	return err
}

// Subscriptions returns the names of a topic's subscriptions in order.
func (c *Consumer) Subscriptions(ctx context.Context, name names.Topic) ([]string, error) {
	_, stats, err := c.catalogue.describeFresh(ctx, name)
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
func (c *Consumer) SubscriptionProperties(ctx context.Context, name names.Topic,
	subscription string,
) (map[string]string, error) {
	_, stats, err := c.describeSubscription(ctx, name, subscription)
	if err != nil {
		return nil, err
	}
	return stats.Config.Properties, nil
}

// SetSubscriptionProperties replaces the properties of a subscription and applies those that the
// broker acts on.
func (c *Consumer) SetSubscriptionProperties(ctx context.Context, name names.Topic, subscription string,
	properties map[string]string,
) error {
	policy, err := c.parsePolicy(properties)
	if err != nil {
		return err
	}
	return c.configure(ctx, name, subscription, func(t target, _ engine.SubscriptionConfig) (engine.SubscriptionConfig,
		error,
	) {
		return c.subscriptionConfig(ctx, t.topic, subscription, policy, properties)
	})
}

// SetSubscriptionFilter replaces the filter of a subscription; "" removes it. It applies to messages that
// were not delivered yet.
func (c *Consumer) SetSubscriptionFilter(ctx context.Context, name names.Topic, subscription, text string) error {
	if err := checkFilter(text); err != nil {
		return err
	}
	return c.configure(ctx, name, subscription, func(_ target, config engine.SubscriptionConfig) (
		engine.SubscriptionConfig, error,
	) {
		config.Properties = maps.Clone(config.Properties)
		if config.Properties == nil {
			config.Properties = make(map[string]string)
		}
		if config.Filter = text; text == "" {
			delete(config.Properties, PropertyFilter)
		} else {
			config.Properties[PropertyFilter] = text
		}
		return config, checkProperties(config.Properties)
	})
}

// configure replaces the configuration of a subscription by the one that change returns. Of two concurrent
// changes, the second one gets the result of the first.
func (c *Consumer) configure(ctx context.Context, name names.Topic, subscription string,
	change func(target, engine.SubscriptionConfig) (engine.SubscriptionConfig, error),
) error {
	t, err := c.catalogue.resolve(ctx, name)
	if err != nil {
		return err
	}
	mu := &c.configuring[t.id%engine.TopicID(len(c.configuring))]
	mu.Lock()
	defer mu.Unlock()
	t, stats, err := c.describeSubscription(ctx, name, subscription)
	if err != nil {
		return err
	}
	config, err := change(t, stats.Config)
	if err != nil {
		return err
	}
	return c.engine.ConfigureSubscription(ctx, t.id, subscription, config)
}

// Unsubscribe deletes a subscription. Without force it returns ErrSubscriptionBusy while consumers
// wait on the subscription.
func (c *Consumer) Unsubscribe(ctx context.Context, name names.Topic, subscription string, force bool) error {
	t, stats, err := c.describeSubscription(ctx, name, subscription)
	if err != nil {
		return err
	}
	if !force && stats.Waiting > 0 {
		return ErrSubscriptionBusy
	}
	if err := c.engine.DeleteSubscription(ctx, t.id, subscription); err != nil {
		return err
	}
	c.live.of(t.id).endSubscription(subscription, ErrNoSubscription)
	return nil
}

// Reset moves a subscription to another position.
func (c *Consumer) Reset(ctx context.Context, name names.Topic, subscription string, at Position) error {
	t, err := c.catalogue.resolve(ctx, name)
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
	err = c.topics.withTopic(ctx, t.id, func() error {
		return c.engine.ResetSubscription(ctx, t.id, subscription, position)
	})
	return positionError(err)
}

func (c *Consumer) describeSubscription(ctx context.Context, name names.Topic,
	subscription string,
) (target, engine.SubscriptionStats, error) {
	t, stats, err := c.catalogue.describeFresh(ctx, name)
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
