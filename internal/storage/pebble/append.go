package pebble

import (
	"context"
	"fmt"
	"time"

	"freshet/internal/storage/engine"
)

// maxAppendBytes limits the size of one Append; the callers have lower limits.
const maxAppendBytes = 64 << 20

// Append implements engine.Log.
func (e *Engine) Append(ctx context.Context, id engine.TopicID, partition int32,
	msgs []engine.Message,
) ([]engine.Appended, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	if len(msgs) == 0 {
		return nil, nil
	}
	if err := e.checkMessageSpace(); err != nil {
		return nil, err
	}
	t, err := e.topics.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer t.release()
	p, err := t.partition(partition)
	if err != nil {
		return nil, err
	}
	if len(msgs) == 1 {
		var scratch [256]byte
		drafts := [1]draft{prepare(&msgs[0], scratch[:0])}
		return e.append(ctx, t, p, drafts[:])
	}
	drafts := make([]draft, len(msgs))
	for i := range msgs {
		drafts[i] = prepare(&msgs[i], nil)
	}
	return e.append(ctx, t, p, drafts)
}

func (e *Engine) append(ctx context.Context, t *topic, p *partition, drafts []draft) ([]engine.Appended, error) {
	total, stored := 0, int64(0)
	for i := range drafts {
		size := drafts[i].size()
		stored += int64(size)
		total += size + messageKeyLen + 32
	}
	if total > maxAppendBytes {
		return nil, fmt.Errorf("%w: %d bytes in one append, at most %d", engine.ErrTooLarge, total, maxAppendBytes)
	}
	if !e.disk.admit(int64(total)) {
		return nil, engine.ErrDiskFull
	}
	if err := t.checkQuota(stored); err != nil {
		return nil, err
	}
	if t.config.Load().Deduplicate && t.dedup.anyKey(drafts) {
		return e.appendOnce(ctx, t, p, drafts, total)
	}
	now := time.Now().UnixMilli()
	batches := packInternalBatches(drafts, now)
	g, err := e.commit.lockWithCapacity(ctx, total)
	if err != nil {
		return nil, err
	}
	if err := t.acceptsLocked(); err != nil {
		e.commit.unlock()
		return nil, err
	}
	out := make([]engine.Appended, len(drafts))
	if len(batches) > 0 {
		p.appendBatchesLocked(g, batches, out, now)
	} else {
		for i := range drafts {
			out[i].ID = p.appendLocked(g, &drafts[i], now)
		}
	}
	t.scheduleAfterAppendLocked(g, now)
	e.commit.unlockAndCommit()
	if err := g.wait(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

// acceptsLocked returns an error when the topic accepts no messages. The caller holds
// committer.mu.
func (t *topic) acceptsLocked() error {
	switch {
	case t.deleted.Load():
		return engine.ErrNoTopic
	case t.config.Load().Terminated:
		return engine.ErrTerminated
	}
	return nil
}

// checkQuota rejects an append that would exceed the topic's backlog quota for a
// subscription, unless the topic evicts.
func (t *topic) checkQuota(size int64) error {
	config := t.config.Load()
	if config.BacklogBytes <= 0 || config.BacklogEvict {
		return nil
	}
	if t.largestBacklog()+size > config.BacklogBytes {
		return engine.ErrBacklogFull
	}
	return nil
}

// largestBacklog returns the bytes of the largest backlog of a subscription, including
// messages that are not durable yet.
func (t *topic) largestBacklog() int64 {
	written := t.written()
	t.mu.RLock()
	defer t.mu.RUnlock()
	var largest int64
	for _, s := range t.subs {
		largest = max(largest, written-s.acked.Load())
	}
	return largest
}

// written returns the bytes that were ever written to the topic.
func (t *topic) written() (n int64) {
	t.e.commit.mu.Lock()
	defer t.e.commit.mu.Unlock()
	for _, p := range *t.parts.Load() {
		n += p.cum
	}
	return n
}
