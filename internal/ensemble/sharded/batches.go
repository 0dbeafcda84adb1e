package sharded

import (
	"cmp"
	"context"

	"freshet/internal/storage/engine"
)

// AppendBatch implements engine.Batches. Only the owner of the topic's shard can append batches.
func (e *Engine) AppendBatch(ctx context.Context, id engine.TopicID, partition int32, batch engine.MessageBatch,
	attributes []engine.AttributeWrite,
) (engine.PendingAppend, error) {
	owned, err := e.shards[e.ShardOf(id)].Engine()
	if err != nil {
		return nil, err
	}
	return owned.AppendBatch(ctx, id, partition, batch, attributes)
}

// ReadBatches implements engine.Batches. When the owner changes during the read, it continues at
// the next owner after the last entry visited.
func (e *Engine) ReadBatches(ctx context.Context, id engine.TopicID, partition int32, from uint64,
	visit func(*engine.StoredValue) (more bool, err error),
) (extent engine.Extent, err error) {
	var failed error // returned by visit; not retried at another owner
	wrapped := visit
	if visit != nil {
		wrapped = func(s *engine.StoredValue) (more bool, err error) {
			more, failed = visit(s)
			from = s.First + uint64(max(s.Run.Count, 1))
			if !more || failed != nil {
				wrapped = nil
			}
			return more, failed
		}
	}
	err = e.call(ctx, e.ShardOf(id), retryAlways, func(at target) error {
		found, err := at.ReadBatches(ctx, id, partition, from, wrapped)
		if err == nil || found != (engine.Extent{}) { // else keep the previous owner's extent
			extent = found
		}
		return err
	})
	return extent, cmp.Or(failed, err)
}

// WaitEntries implements engine.Batches.
func (e *Engine) WaitEntries(ctx context.Context, marks []engine.PartitionPosition) error {
	byShard := make(map[int][]engine.PartitionPosition)
	for _, m := range marks {
		shard := e.ShardOf(m.Topic)
		byShard[shard] = append(byShard[shard], m)
	}
	if len(byShard) == 1 {
		for shard, its := range byShard {
			return e.grown(ctx, shard, its)
		}
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan error, len(byShard))
	for shard, its := range byShard {
		go func() { first <- e.grown(waiting, shard, its) }()
	}
	if len(byShard) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	err := <-first
	cancel()
	for range len(byShard) - 1 {
		<-first
	}
	return err
}

func (e *Engine) grown(ctx context.Context, shard int, marks []engine.PartitionPosition) error {
	return e.call(ctx, shard, retryAlways, func(at target) error { return at.WaitEntries(ctx, marks) })
}

// FindByTime implements engine.Batches.
func (e *Engine) FindByTime(ctx context.Context, id engine.TopicID, partition int32,
	millis int64,
) (engine.FindResult, error) {
	return on(ctx, e, id, retryAlways, func(at target) (engine.FindResult, error) {
		return at.FindByTime(ctx, id, partition, millis)
	})
}

// FindNewest implements engine.Batches.
func (e *Engine) FindNewest(ctx context.Context, id engine.TopicID,
	partition int32,
) (engine.FindResult, error) {
	return on(ctx, e, id, retryAlways, func(at target) (engine.FindResult, error) {
		return at.FindNewest(ctx, id, partition)
	})
}

// Attributes implements engine.Batches.
func (e *Engine) Attributes(ctx context.Context, id engine.TopicID, partition int32, prefix []byte,
	visit func(engine.Attribute) error,
) error {
	return e.once(ctx, id, func(at target) error { return at.Attributes(ctx, id, partition, prefix, visit) })
}

// Trim implements engine.Batches.
func (e *Engine) Trim(ctx context.Context, id engine.TopicID, partition int32,
	before uint64,
) (uint64, error) {
	return on(ctx, e, id, retryNever, func(at target) (uint64, error) { return at.Trim(ctx, id, partition, before) })
}
