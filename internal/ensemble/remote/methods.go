package remote

import (
	"context"
	"time"

	"freshet/internal/storage/engine"
)

// do sends a call that has no result.
func (s *Shard) do(ctx context.Context, o operation[reply], r request) error {
	_, err := o.call(ctx, s, r)
	return err
}

// CreateTopic implements engine.Topics.
func (s *Shard) CreateTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	return s.do(ctx, createTopic, request{Topic: id, TopicConfig: config})
}

// ConfigureTopic implements engine.Topics.
func (s *Shard) ConfigureTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	return s.do(ctx, configureTopic, request{Topic: id, TopicConfig: config})
}

// DeleteTopic implements engine.Topics.
func (s *Shard) DeleteTopic(ctx context.Context, id engine.TopicID) error {
	return s.do(ctx, deleteTopic, request{Topic: id})
}

// DescribeTopic implements engine.Topics.
func (s *Shard) DescribeTopic(ctx context.Context, id engine.TopicID) (engine.TopicStats, error) {
	return describeTopic.call(ctx, s, request{Topic: id})
}

// ListTopics implements engine.Topics.
func (s *Shard) ListTopics(ctx context.Context, after engine.TopicID, limit int) ([]engine.TopicID, error) {
	return listTopics.call(ctx, s, request{Topic: after, Limit: limit})
}

// Append implements engine.Log.
func (s *Shard) Append(ctx context.Context, id engine.TopicID, partition int32,
	msgs []engine.Message,
) ([]engine.Appended, error) {
	return appendMessages.call(ctx, s, request{Topic: id, Partition: partition, Messages: msgs})
}

// Read implements engine.Log.
func (s *Shard) Read(ctx context.Context, id engine.TopicID, req engine.ReadRequest) ([]engine.Record, error) {
	for left := req.Wait; ; {
		req.Wait = min(left, maxWait)
		records, err := readMessages.call(ctx, s, request{Topic: id, Read: req})
		if left -= req.Wait; err != nil || len(records) > 0 || left <= 0 {
			return records, err
		}
	}
}

// CreateSubscription implements engine.Subscriptions.
func (s *Shard) CreateSubscription(ctx context.Context, id engine.TopicID, name string,
	config engine.SubscriptionConfig, at engine.Position,
) error {
	return s.do(ctx, createSubscription, request{Topic: id, Name: name, Subscription: config, Position: at})
}

// ConfigureSubscription implements engine.Subscriptions.
func (s *Shard) ConfigureSubscription(ctx context.Context, id engine.TopicID, name string,
	config engine.SubscriptionConfig,
) error {
	return s.do(ctx, configureSubscription, request{Topic: id, Name: name, Subscription: config})
}

// DeleteSubscription implements engine.Subscriptions.
func (s *Shard) DeleteSubscription(ctx context.Context, id engine.TopicID, name string) error {
	return s.do(ctx, deleteSubscription, request{Topic: id, Name: name})
}

// ResetSubscription implements engine.Subscriptions.
func (s *Shard) ResetSubscription(ctx context.Context, id engine.TopicID, name string, at engine.Position) error {
	return s.do(ctx, resetSubscription, request{Topic: id, Name: name, Position: at})
}

// Receive implements engine.Subscriptions.
func (s *Shard) Receive(ctx context.Context, id engine.TopicID, name string,
	req engine.ReceiveRequest,
) ([]engine.Delivery, error) {
	for left := req.Wait; ; {
		req.Wait = min(left, maxWait)
		deliveries, err := receive.call(ctx, s, request{Topic: id, Name: name, Receive: req})
		if left -= req.Wait; err != nil || len(deliveries) > 0 || left <= 0 {
			return deliveries, err
		}
	}
}

// Settle implements engine.Subscriptions.
func (s *Shard) Settle(ctx context.Context, id engine.TopicID, name string, settlements []engine.Settlement) error {
	return s.do(ctx, settle, request{Topic: id, Name: name, Settlements: settlements})
}

// AppendBatch returns ErrNotOwner: only the owner appends batches, because it keeps the state of
// their producers in memory.
func (*Shard) AppendBatch(context.Context, engine.TopicID, int32, engine.MessageBatch,
	[]engine.AttributeWrite,
) (engine.PendingAppend, error) {
	return nil, engine.ErrNotOwner
}

// ReadBatches implements engine.Batches.
func (s *Shard) ReadBatches(ctx context.Context, id engine.TopicID, partition int32, from uint64,
	visit func(*engine.StoredValue) (bool, error),
) (engine.Extent, error) {
	var extent engine.Extent
	for first := true; ; first = false {
		a, err := readBatches.call(ctx, s,
			request{Topic: id, Partition: partition, Entry: from, Limit: pageLimit(visit)})
		if err != nil {
			return extent, err
		}
		if first {
			extent = a.Extent
		}
		for i := range a.Stored {
			stored := &a.Stored[i]
			if more, err := visit(stored); err != nil || !more {
				return extent, err
			}
			from = stored.First + uint64(max(stored.Run.Count, 1))
		}
		if !a.More || from >= extent.Next {
			return extent, nil
		}
	}
}

// pageLimit returns 0 when the caller needs only the extent.
func pageLimit(visit func(*engine.StoredValue) (bool, error)) int {
	if visit == nil {
		return 0
	}
	return pageItems
}

// WaitEntries implements engine.Batches.
func (s *Shard) WaitEntries(ctx context.Context, positions []engine.PartitionPosition) error {
	for {
		again, err := waitEntries.call(ctx, s, request{Marks: positions})
		if err != nil || !again {
			return err
		}
	}
}

// FindByTime implements engine.Batches.
func (s *Shard) FindByTime(ctx context.Context, id engine.TopicID, partition int32,
	millis int64,
) (engine.FindResult, error) {
	return findByTime.call(ctx, s, request{Topic: id, Partition: partition, Millis: millis})
}

// FindNewest implements engine.Batches.
func (s *Shard) FindNewest(ctx context.Context, id engine.TopicID, partition int32) (engine.FindResult, error) {
	return findNewest.call(ctx, s, request{Topic: id, Partition: partition})
}

// Attributes implements engine.Batches.
func (s *Shard) Attributes(ctx context.Context, id engine.TopicID, partition int32, prefix []byte,
	visit func(engine.Attribute) error,
) error {
	all, err := attributes.call(ctx, s, request{Topic: id, Partition: partition, Key: prefix})
	if err != nil {
		return err
	}
	for _, attribute := range all {
		if err := visit(attribute); err != nil {
			return err
		}
	}
	return nil
}

// Trim implements engine.Batches.
func (s *Shard) Trim(ctx context.Context, id engine.TopicID, partition int32, before uint64) (uint64, error) {
	return trim.call(ctx, s, request{Topic: id, Partition: partition, Entry: before})
}

// Totals returns the totals of the shard's topics from the owner.
func (s *Shard) Totals(ctx context.Context) (engine.Totals, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return totals.call(ctx, s, request{})
}
