package sharded

import (
	"context"
	"slices"
	"time"

	"freshet/internal/storage/engine"
)

// CreateTopic implements engine.Topics.
func (e *Engine) CreateTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	return e.once(ctx, id, func(at target) error { return at.CreateTopic(ctx, id, config) })
}

// ConfigureTopic implements engine.Topics.
func (e *Engine) ConfigureTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	return e.once(ctx, id, func(at target) error { return at.ConfigureTopic(ctx, id, config) })
}

// DeleteTopic implements engine.Topics.
func (e *Engine) DeleteTopic(ctx context.Context, id engine.TopicID) error {
	return e.once(ctx, id, func(at target) error { return at.DeleteTopic(ctx, id) })
}

// DescribeTopic implements engine.Topics.
func (e *Engine) DescribeTopic(ctx context.Context, id engine.TopicID) (engine.TopicStats, error) {
	return on(ctx, e, id, retryAlways, func(at target) (engine.TopicStats, error) { return at.DescribeTopic(ctx, id) })
}

// ListTopics implements engine.Topics.
func (e *Engine) ListTopics(ctx context.Context, after engine.TopicID, limit int) ([]engine.TopicID, error) {
	var all []engine.TopicID
	for shard := range e.shards {
		var ids []engine.TopicID // of the last attempt; a failed attempt may have returned some of them
		err := e.call(ctx, shard, retryAlways, func(at target) (err error) {
			ids, err = at.ListTopics(ctx, after, limit)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	}
	slices.Sort(all)
	return all[:min(len(all), max(limit, 0))], nil
}

// Append implements engine.Log.
func (e *Engine) Append(ctx context.Context, id engine.TopicID, partition int32,
	msgs []engine.Message,
) ([]engine.Appended, error) {
	return on(ctx, e, id, retryNever, func(at target) ([]engine.Appended, error) {
		return at.Append(ctx, id, partition, msgs)
	})
}

// Read implements engine.Log.
func (e *Engine) Read(ctx context.Context, id engine.TopicID,
	req engine.ReadRequest,
) ([]engine.Record, error) {
	return on(ctx, e, id, retryAlways, func(at target) ([]engine.Record, error) { return at.Read(ctx, id, req) })
}

// CreateSubscription implements engine.Subscriptions.
func (e *Engine) CreateSubscription(ctx context.Context, id engine.TopicID, name string,
	config engine.SubscriptionConfig, at engine.Position,
) error {
	return e.once(ctx, id, func(to target) error { return to.CreateSubscription(ctx, id, name, config, at) })
}

// ConfigureSubscription implements engine.Subscriptions.
func (e *Engine) ConfigureSubscription(ctx context.Context, id engine.TopicID, name string,
	config engine.SubscriptionConfig,
) error {
	return e.once(ctx, id, func(at target) error { return at.ConfigureSubscription(ctx, id, name, config) })
}

// DeleteSubscription implements engine.Subscriptions.
func (e *Engine) DeleteSubscription(ctx context.Context, id engine.TopicID, name string) error {
	return e.once(ctx, id, func(at target) error { return at.DeleteSubscription(ctx, id, name) })
}

// ResetSubscription implements engine.Subscriptions.
func (e *Engine) ResetSubscription(ctx context.Context, id engine.TopicID, name string, at engine.Position) error {
	return e.once(ctx, id, func(to target) error { return to.ResetSubscription(ctx, id, name, at) })
}

// Receive implements engine.Subscriptions.
func (e *Engine) Receive(ctx context.Context, id engine.TopicID, name string,
	req engine.ReceiveRequest,
) ([]engine.Delivery, error) {
	until := time.Now().Add(req.Wait)
	return on(ctx, e, id, retryWhenMoved, func(at target) ([]engine.Delivery, error) {
		deliveries, err := at.Receive(ctx, id, name, req)
		req.Wait = max(0, time.Until(until)) // for the next owner
		return deliveries, err
	})
}

// Settle implements engine.Subscriptions.
func (e *Engine) Settle(ctx context.Context, id engine.TopicID, name string, settlements []engine.Settlement) error {
	return e.once(ctx, id, func(at target) error { return at.Settle(ctx, id, name, settlements) })
}
