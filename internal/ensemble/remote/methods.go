package remote

import (
	"context"
	"time"

	"freshet/internal/storage/engine"
)

// do sends a call that has no result.
func (s *Shard) do(ctx context.Context, r request) error {
	_, err := s.call(ctx, r)
	return err
}

// CreateTopic implements engine.Topics.
func (s *Shard) CreateTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	return s.do(ctx, request{Method: createTopic, Topic: id, TopicConfig: config})
}

// ConfigureTopic implements engine.Topics.
func (s *Shard) ConfigureTopic(ctx context.Context, id engine.TopicID, config engine.TopicConfig) error {
	return s.do(ctx, request{Method: configureTopic, Topic: id, TopicConfig: config})
}

// DeleteTopic implements engine.Topics.
func (s *Shard) DeleteTopic(ctx context.Context, id engine.TopicID) error {
	return s.do(ctx, request{Method: deleteTopic, Topic: id})
}

// DescribeTopic implements engine.Topics.
func (s *Shard) DescribeTopic(ctx context.Context, id engine.TopicID) (engine.TopicStats, error) {
	a, err := s.call(ctx, request{Method: describeTopic, Topic: id})
	if err != nil {
		return engine.TopicStats{}, err
	}
	return a.Stats, nil
}

// ListTopics implements engine.Topics.
func (s *Shard) ListTopics(ctx context.Context, after engine.TopicID, limit int) ([]engine.TopicID, error) {
	a, err := s.call(ctx, request{Method: listTopics, Topic: after, Limit: limit})
	if err != nil {
		return nil, err
	}
	return a.IDs, nil
}

// Append implements engine.Log.
func (s *Shard) Append(ctx context.Context, id engine.TopicID, partition int32,
	msgs []engine.Message,
) ([]engine.Appended, error) {
	a, err := s.call(ctx, request{Method: appendMessages, Topic: id, Partition: partition, Messages: msgs})
	if err != nil {
		return nil, err
	}
	return a.Appended, nil
}

// Read implements engine.Log.
func (s *Shard) Read(ctx context.Context, id engine.TopicID, req engine.ReadRequest) ([]engine.Record, error) {
	for left := req.Wait; ; {
		req.Wait = min(left, maxWait)
		a, err := s.call(ctx, request{Method: readMessages, Topic: id, Read: req})
		if left -= req.Wait; err != nil || len(a.Records) > 0 || left <= 0 {
			if err != nil {
				return nil, err
			}
			return a.Records, nil
		}
	}
}

// CreateSubscription implements engine.Subscriptions.
func (s *Shard) CreateSubscription(ctx context.Context, id engine.TopicID, name string,
	config engine.SubscriptionConfig, at engine.Position,
) error {
	return s.do(ctx, request{Method: createSubscription, Topic: id, Name: name, Subscription: config, Position: at})
}

// ConfigureSubscription implements engine.Subscriptions.
func (s *Shard) ConfigureSubscription(ctx context.Context, id engine.TopicID, name string,
	config engine.SubscriptionConfig,
) error {
	return s.do(ctx, request{Method: configureSubscription, Topic: id, Name: name, Subscription: config})
}

// DeleteSubscription implements engine.Subscriptions.
func (s *Shard) DeleteSubscription(ctx context.Context, id engine.TopicID, name string) error {
	return s.do(ctx, request{Method: deleteSubscription, Topic: id, Name: name})
}

// ResetSubscription implements engine.Subscriptions.
func (s *Shard) ResetSubscription(ctx context.Context, id engine.TopicID, name string, at engine.Position) error {
	return s.do(ctx, request{Method: resetSubscription, Topic: id, Name: name, Position: at})
}

// Receive implements engine.Subscriptions.
func (s *Shard) Receive(ctx context.Context, id engine.TopicID, name string,
	req engine.ReceiveRequest,
) ([]engine.Delivery, error) {
	for left := req.Wait; ; {
		req.Wait = min(left, maxWait)
		a, err := s.call(ctx, request{Method: receive, Topic: id, Name: name, Receive: req})
		if left -= req.Wait; err != nil || len(a.Deliveries) > 0 || left <= 0 {
			if err != nil {
				return nil, err
			}
			return a.Deliveries, nil
		}
	}
}

// Settle implements engine.Subscriptions.
func (s *Shard) Settle(ctx context.Context, id engine.TopicID, name string, settlements []engine.Settlement) error {
	return s.do(ctx, request{Method: settle, Topic: id, Name: name, Settlements: settlements})
}

// AppendBatch returns ErrNotOwner: only the owner can append a batch, because the side entries
// of the batch depend on its position.
func (*Shard) AppendBatch(context.Context, engine.TopicID, int32, engine.MessageBatch,
	func(uint64) []engine.Attribute,
) (engine.PendingAppend, error) {
	return nil, engine.ErrNotOwner
}

// ReadBatches implements engine.Batches.
func (s *Shard) ReadBatches(ctx context.Context, id engine.TopicID, partition int32, from uint64,
	visit func(*engine.StoredValue) (bool, error),
) (engine.Extent, error) {
	var extent engine.Extent
	for first := true; ; first = false {
		a, err := s.call(ctx,
			request{Method: readBatches, Topic: id, Partition: partition, Entry: from, Limit: pageLimit(visit)})
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
func (s *Shard) WaitEntries(ctx context.Context, marks []engine.PartitionPosition) error {
	for {
		a, err := s.call(ctx, request{Method: grown, Marks: marks})
		if err != nil || !a.More {
			return err
		}
	}
}

// FindByTime implements engine.Batches.
func (s *Shard) FindByTime(ctx context.Context, id engine.TopicID, partition int32,
	millis int64,
) (engine.FindResult, error) {
	a, err := s.call(ctx, request{Method: find, Topic: id, Partition: partition, Millis: millis})
	if err != nil {
		return engine.FindResult{}, err
	}
	return a.Found, nil
}

// FindNewest implements engine.Batches.
func (s *Shard) FindNewest(ctx context.Context, id engine.TopicID, partition int32) (engine.FindResult, error) {
	a, err := s.call(ctx, request{Method: findNewest, Topic: id, Partition: partition})
	if err != nil {
		return engine.FindResult{}, err
	}
	return a.Found, nil
}

// Attributes implements engine.Batches.
func (s *Shard) Attributes(ctx context.Context, id engine.TopicID, partition int32, prefix []byte,
	visit func(engine.Attribute) error,
) error {
	a, err := s.call(ctx, request{Method: sides, Topic: id, Partition: partition, Key: prefix})
	if err != nil {
		return err
	}
	for _, side := range a.Sides {
		if err := visit(side); err != nil {
			return err
		}
	}
	return nil
}

// Trim implements engine.Batches.
func (s *Shard) Trim(ctx context.Context, id engine.TopicID, partition int32, before uint64) (uint64, error) {
	a, err := s.call(ctx, request{Method: trim, Topic: id, Partition: partition, Entry: before})
	if err != nil {
		return 0, err
	}
	return a.Entry, nil
}

// Totals returns the totals of the shard's topics from the owner.
func (s *Shard) Totals(ctx context.Context) (engine.Totals, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	a, err := s.call(ctx, request{Method: totals})
	if err != nil {
		return engine.Totals{}, err
	}
	return a.Totals, nil
}
