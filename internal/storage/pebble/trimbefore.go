package pebble

import (
	"context"
	"errors"
	"fmt"

	"freshet/internal/storage/engine"
)

// Trim implements engine.Batches.
func (e *Engine) Trim(ctx context.Context, id engine.TopicID, index int32, before uint64) (uint64, error) {
	p, err := e.beginPartition(ctx, id, index)
	if err != nil {
		return 0, err
	}
	defer p.topic.end()
	t := p.topic
	t.admin.Lock()
	last, err := t.trimBeforeLocked(ctx, p, before)
	t.admin.Unlock()
	if err != nil {
		return 0, err
	}
	if err := last.wait(ctx); err != nil {
		return 0, err
	}
	return p.first.Load(), nil
}

// trimBeforeLocked moves subscriptions past the entries before an entry, deletes these
// entries, and returns the last commit batch of the deletion. The caller holds topic.admin,
// so that no subscription is created or moved back meanwhile.
func (t *topic) trimBeforeLocked(ctx context.Context, p *partition, before uint64) (*commitBatch, error) {
	if end := p.durable.Load(); before > end {
		return nil, fmt.Errorf("%w: entry %d is after the end of the partition, which is %d",
			engine.ErrNoMessage, before, end)
	}
	floors := make([]uint64, len(*t.parts.Load()))
	floors[p.index] = before
	for _, name := range t.subscriptionNames() {
		s, err := t.subscription(ctx, name)
		if errors.Is(err, engine.ErrNoSubscription) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if _, err := s.raiseLocked(floors); err != nil {
			return nil, err
		}
	}
	for {
		g, err := t.cutBeforeLocked(p, max(before, p.first.Load()))
		if err != nil || p.first.Load() >= before {
			return g, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// cutBeforeLocked deletes entries before an entry, as many as fit into one commit batch. The
// caller holds topic.admin.
func (t *topic) cutBeforeLocked(p *partition, to uint64) (*commitBatch, error) {
	c := &cut{part: p, to: to, delays: p.hasDelays.Load()}
	var err error
	if t.config.Load().Deduplicate {
		if c.to, err = t.listDedupLocked(c, p.first.Load(), to); err != nil {
			return nil, err
		}
	}
	if c.cum, err = p.cumBefore(c.to); err != nil {
		return nil, err
	}
	g, err := t.e.commit.lockBatch()
	if err != nil {
		return nil, err
	}
	defer t.e.commit.unlockAndCommit()
	if t.deleted.Load() {
		return nil, engine.ErrNoTopic
	}
	c.applyLocked(g)
	return g, nil
}
