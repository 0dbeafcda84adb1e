package pebble

import (
	"context"
	"fmt"
	"time"

	"freshet/internal/storage/engine"
)

// maxAppendBytes limits the size of one append; the callers have lower limits.
const maxAppendBytes = 64 << 20

// appendSet is what one call appends to a partition: messages that are stored individually,
// then messages that are stored in batches, and attributes. It is encoded, except for the
// values that depend on the first entry, before committer.mu is locked.
type appendSet struct {
	drafts     []draft
	batches    []packedBatch
	attributes []attributeWrite
	stored     int64 // bytes that count against the backlog quota
	need       int   // bytes in a commit batch
}

// Append implements engine.Log.
func (e *Engine) Append(ctx context.Context, id engine.TopicID, partition int32,
	msgs []engine.Message,
) ([]engine.Appended, error) {
	p, err := e.beginPartition(ctx, id, partition)
	if err != nil {
		return nil, err
	}
	defer p.topic.end()
	if len(msgs) == 0 {
		return nil, nil
	}
	if len(msgs) == 1 {
		var scratch [256]byte
		drafts := [1]draft{prepare(&msgs[0], scratch[:0])}
		return p.appendMessages(ctx, drafts[:])
	}
	drafts := make([]draft, len(msgs))
	for i := range msgs {
		drafts[i] = prepare(&msgs[i], nil)
	}
	return p.appendMessages(ctx, drafts)
}

// AppendBatch implements engine.Batches.
func (e *Engine) AppendBatch(ctx context.Context, id engine.TopicID, partition int32, batch engine.MessageBatch,
	attributes []engine.AttributeWrite,
) (engine.PendingAppend, error) {
	p, err := e.beginPartition(ctx, id, partition)
	if err != nil {
		return nil, err
	}
	defer p.topic.end()
	if err := checkBatch(&batch); err != nil {
		return nil, err
	}
	writes, err := p.prepareAttributes(attributes)
	if err != nil {
		return nil, err
	}
	batches := [1]packedBatch{packBatch(&batch)}
	size := batches[0].size()
	set := appendSet{
		batches: batches[:], attributes: writes, stored: int64(size), need: size + messageKeyLen + writeOverhead,
	}
	if err := p.admit(&set); err != nil {
		return nil, err
	}
	pending, err := p.append(ctx, &set, time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	return &pending, nil
}

// writeOverhead is an upper bound for what a commit batch adds to a key and its value.
const writeOverhead = 32

// appendMessages appends messages and waits until they are durable.
func (p *partition) appendMessages(ctx context.Context, drafts []draft) ([]engine.Appended, error) {
	set := appendSet{drafts: drafts}
	for i := range drafts {
		size := drafts[i].size()
		set.stored += int64(size)
		set.need += size + messageKeyLen + writeOverhead
	}
	if err := p.admit(&set); err != nil {
		return nil, err
	}
	if p.topic.config.Load().Deduplicate && p.topic.dedup.anyKey(drafts) {
		return p.appendOnce(ctx, drafts, set.need)
	}
	now := time.Now().UnixMilli()
	if set.batches = packInternalBatches(drafts, now); len(set.batches) > 0 {
		set.drafts = nil
	}
	pending, err := p.append(ctx, &set, now)
	if err != nil {
		return nil, err
	}
	out := make([]engine.Appended, len(drafts))
	for i := range out {
		out[i].ID = p.id(pending.first + uint64(i))
	}
	if err := pending.batch.wait(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

// admit checks the limits of an append: its size, the space on the disk and in the log, and
// the topic's backlog quota.
func (p *partition) admit(set *appendSet) error {
	e := p.topic.e
	if set.need > maxAppendBytes {
		return fmt.Errorf("%w: %d bytes in one append, at most %d", engine.ErrTooLarge, set.need, maxAppendBytes)
	}
	if err := e.checkMessageSpace(); err != nil {
		return err
	}
	if !e.disk.admit(int64(set.need)) {
		return engine.ErrDiskFull
	}
	return p.topic.checkQuota(set.stored)
}

// append adds the set to the current commit batch and does not wait for it.
func (p *partition) append(ctx context.Context, set *appendSet, now int64) (pendingAppend, error) {
	t := p.topic
	g, err := t.lockForAppend(ctx, set.need)
	if err != nil {
		return pendingAppend{}, err
	}
	defer t.e.commit.unlockAndCommit()
	pending := pendingAppend{first: p.next, batch: g}
	for i := range set.drafts {
		p.appendLocked(g, &set.drafts[i], now)
	}
	for i := range set.batches {
		p.appendBatchLocked(g, &set.batches[i], now)
	}
	for i := range set.attributes {
		g.setAttributeLocked(&set.attributes[i], pending.first)
	}
	t.scheduleAfterAppendLocked(g, now)
	pending.publish = p.publish
	return pending, nil
}

// lockForAppend is lockWithCapacity for messages of a topic: it returns an error when the topic
// does not accept them.
func (t *topic) lockForAppend(ctx context.Context, need int) (*commitBatch, error) {
	g, err := t.e.commit.lockWithCapacity(ctx, need)
	if err != nil {
		return nil, err
	}
	if err := t.acceptsLocked(); err != nil {
		t.e.commit.unlock()
		return nil, err
	}
	return g, nil
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
