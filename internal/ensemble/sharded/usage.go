package sharded

import (
	"context"
	"sync"
	"time"

	"freshet/internal/storage/engine"
)

// visitOwned calls visit for the engines of the shards that this member owns.
func (e *Engine) visitOwned(visit func(engine.Engine)) {
	for _, s := range e.shards {
		if owned, err := s.Engine(); err == nil {
			visit(owned)
		}
	}
}

// Usage implements engine.Statistics for the shards that this member owns.
func (e *Engine) Usage(ctx context.Context, visit func(engine.Usage)) (err error) {
	e.visitOwned(func(owned engine.Engine) {
		if err == nil {
			err = owned.Usage(ctx, visit)
		}
	})
	return err
}

// UsageOf implements engine.Statistics for the shards that this member owns.
func (e *Engine) UsageOf(ctx context.Context, ids []engine.TopicID, visit func(engine.Usage)) (err error) {
	e.visitOwned(func(owned engine.Engine) {
		if err == nil {
			err = owned.UsageOf(ctx, ids, visit)
		}
	})
	return err
}

// DamagedMessages implements engine.Statistics for the shards that this member owns.
func (e *Engine) DamagedMessages() (found, skipped int64) {
	e.visitOwned(func(owned engine.Engine) {
		f, s := owned.DamagedMessages()
		found, skipped = found+f, skipped+s
	})
	return found, skipped
}

// Disk implements engine.Statistics for the shards that this member owns. All of them are on
// one file system.
func (e *Engine) Disk() engine.Disk {
	sum := engine.Disk{Available: -1}
	e.visitOwned(func(owned engine.Engine) {
		d := owned.Disk()
		if d.Used >= 0 {
			sum.Used += d.Used
		}
		if d.Available >= 0 {
			sum.Available = d.Available
		}
		sum.Loaded += d.Loaded
	})
	return sum
}

// OnDeadLetter implements engine.Statistics.
func (e *Engine) OnDeadLetter(count func(engine.TopicID)) {
	e.deadLetter.Store(&count)
	e.visitOwned(func(owned engine.Engine) { owned.OnDeadLetter(count) })
}

// SelectWith implements engine.Engine for the shards that this member owns. The owner of a shard
// evaluates the filters also for calls of other members.
func (e *Engine) SelectWith(s engine.Selector) {
	e.selector.Store(&s)
	e.visitOwned(func(owned engine.Engine) { owned.SelectWith(s) })
}

// ShardAcquired registers the cluster's OnDeadLetter callback and its Selector with the engine of a shard
// that this member has begun to own.
func (e *Engine) ShardAcquired(owned engine.Engine) {
	if s := e.selector.Load(); s != nil {
		owned.SelectWith(*s)
	}
	if count := e.deadLetter.Load(); count != nil {
		owned.OnDeadLetter(*count)
	}
}

// clusterTotals caches the totals of shards that other members own. mu protects all fields.
type clusterTotals struct {
	mu        sync.Mutex
	fetchedAt time.Time
	fetching  bool
	byShard   map[int]engine.Totals
}

const totalsMaxAge = 2 * time.Second

// Totals implements engine.Statistics for the whole cluster.
func (e *Engine) Totals() engine.Totals {
	var sum engine.Totals
	var elsewhere []int
	for i, s := range e.shards {
		owned, err := s.Engine()
		if err != nil {
			elsewhere = append(elsewhere, i)
			continue
		}
		t := owned.Totals()
		sum.Stored, sum.Subscriptions = sum.Stored+t.Stored, sum.Subscriptions+t.Subscriptions
	}
	if len(elsewhere) == 0 {
		return sum
	}
	c := &e.totals
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, shard := range elsewhere {
		t := c.byShard[shard]
		sum.Stored, sum.Subscriptions = sum.Stored+t.Stored, sum.Subscriptions+t.Subscriptions
	}
	if !c.fetching && time.Since(c.fetchedAt) > totalsMaxAge && e.opts.Remote != nil && e.ctx.Err() == nil {
		c.fetching = true
		e.work.Go(func() { e.fetchTotals(elsewhere) })
	}
	return sum
}

// fetchTotals fetches the totals of shards from their owners.
func (e *Engine) fetchTotals(shards []int) {
	found := make(map[int]engine.Totals, len(shards))
	for _, shard := range shards {
		owner := e.shards[shard].Owner()
		if owner.Member == "" || owner.Member == e.opts.Member {
			continue
		}
		if t, err := e.opts.Remote.Shard(e.opts.Cluster, shard, owner).Totals(e.ctx); err == nil {
			found[shard] = t
		}
	}
	c := &e.totals
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byShard == nil {
		c.byShard = make(map[int]engine.Totals)
	}
	for shard, t := range found {
		c.byShard[shard] = t
	}
	c.fetchedAt, c.fetching = time.Now(), false
}
