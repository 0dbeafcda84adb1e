package sharded

import (
	"cmp"
	"context"

	"freshet/internal/storage/engine"
)

// AppendRun implements engine.Runs. Only the owner of the topic's shard can append batches.
func (e *Engine) AppendRun(ctx context.Context, id engine.TopicID, partition int32, run engine.Run,
	sides func(first uint64) []engine.Side,
) (engine.Ticket, error) {
	owned, err := e.shards[e.ShardOf(id)].Engine()
	if err != nil {
		return nil, err
	}
	return owned.AppendRun(ctx, id, partition, run, sides)
}

// ReadRuns implements engine.Runs. When the owner changes during the read, it continues at
// the next owner after the last entry visited.
func (e *Engine) ReadRuns(ctx context.Context, id engine.TopicID, partition int32, from uint64,
	visit func(*engine.Stored) (more bool, err error),
) (extent engine.Extent, err error) {
	var failed error // returned by visit; not retried at another owner
	see := visit
	if visit != nil {
		see = func(s *engine.Stored) (more bool, err error) {
			more, failed = visit(s)
			from = s.First + uint64(max(s.Run.Count, 1))
			if !more || failed != nil {
				see = nil
			}
			return more, failed
		}
	}
	err = e.call(ctx, e.ShardOf(id), always, func(at place) error {
		found, err := at.ReadRuns(ctx, id, partition, from, see)
		if err == nil || found != (engine.Extent{}) { // else keep the previous owner's extent
			extent = found
		}
		return err
	})
	return extent, cmp.Or(failed, err)
}

// Grown implements engine.Runs.
func (e *Engine) Grown(ctx context.Context, marks []engine.Mark) error {
	byShard := make(map[int][]engine.Mark)
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

func (e *Engine) grown(ctx context.Context, shard int, marks []engine.Mark) error {
	return e.call(ctx, shard, always, func(at place) error { return at.Grown(ctx, marks) })
}

// Find implements engine.Runs.
func (e *Engine) Find(ctx context.Context, id engine.TopicID, partition int32,
	millis int64,
) (found engine.Found, err error) {
	err = e.call(ctx, e.ShardOf(id), always, func(at place) (err error) {
		found, err = at.Find(ctx, id, partition, millis)
		return err
	})
	return found, err
}

// FindNewest implements engine.Runs.
func (e *Engine) FindNewest(ctx context.Context, id engine.TopicID, partition int32) (found engine.Found, err error) {
	err = e.call(ctx, e.ShardOf(id), always, func(at place) (err error) {
		found, err = at.FindNewest(ctx, id, partition)
		return err
	})
	return found, err
}

// Sides implements engine.Runs.
func (e *Engine) Sides(ctx context.Context, id engine.TopicID, partition int32, prefix []byte,
	visit func(engine.Side) error,
) error {
	return e.call(ctx, e.ShardOf(id), never,
		func(at place) error { return at.Sides(ctx, id, partition, prefix, visit) })
}

// Trim implements engine.Runs.
func (e *Engine) Trim(ctx context.Context, id engine.TopicID, partition int32,
	before uint64,
) (first uint64, err error) {
	err = e.call(ctx, e.ShardOf(id), never, func(at place) (err error) {
		first, err = at.Trim(ctx, id, partition, before)
		return err
	})
	return first, err
}
