package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"freshet/internal/storage/engine"
)

// A batch is stored as one value under the entry of its last message. So the batch that
// contains an entry is the first key at or after it, and a single message is a batch of
// one. The end of a partition is still its last key, and trimming, which deletes the keys
// below an entry, never deletes a batch that contains the entry.

// packedBatch is a batch that is encoded except for the values that depend on its entry.
type packedBatch struct {
	format  engine.BatchFormat
	count   int32
	maxTime int64
	body    []byte
	sum     uint32
}

func (r *packedBatch) size() int { return recordHeaderLen + batchHeadLen + len(r.body) }

func packBatch(batch *engine.MessageBatch) packedBatch {
	return packedBatch{
		format: batch.Format, count: batch.Count, maxTime: batch.MaxTime, body: batch.Body,
		sum: crc32.Update(0, castagnoli, batch.Body),
	}
}

// put writes the batch into value, which has exactly size bytes.
func (r *packedBatch) put(key, value []byte, publish, cum, maxTime int64) {
	value[4] = 0
	body := putHead(value, extraBatch, publish, cum, maxTime)
	more := value[recordHeaderLen+maxTimeLen:]
	more[0] = byte(r.format)
	binary.LittleEndian.PutUint32(more[1:], uint32(r.count))
	binary.LittleEndian.PutUint64(more[5:], uint64(r.maxTime))
	copy(value[body:], r.body)
	seal(key, value, body, r.sum)
}

// pendingAppend implements engine.PendingAppend.
type pendingAppend struct {
	first   uint64
	publish int64
	batch   *commitBatch
}

func (t *pendingAppend) First() uint64                  { return t.first }
func (t *pendingAppend) PublishTime() int64             { return t.publish }
func (t *pendingAppend) Wait(ctx context.Context) error { return t.batch.wait(ctx) }

// AppendBatch implements engine.Batches.
func (e *Engine) AppendBatch(ctx context.Context, id engine.TopicID, partition int32, batch engine.MessageBatch,
	attributes func(first uint64) []engine.Attribute,
) (engine.PendingAppend, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := checkBatch(&batch); err != nil {
		return nil, err
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
	packed := packBatch(&batch)
	size := packed.size()
	if err := t.checkQuota(int64(size)); err != nil {
		return nil, err
	}
	need := size + messageKeyLen + 32
	now := time.Now().UnixMilli()
	g, err := e.commit.lockWithCapacity(ctx, need)
	if err != nil {
		return nil, err
	}
	if err := t.acceptsLocked(); err != nil {
		e.commit.unlock()
		return nil, err
	}
	var written []engine.Attribute
	if attributes != nil {
		if written, err = checkAttributes(attributes(p.next)); err != nil {
			e.commit.unlock()
			return nil, err
		}
	}
	first := p.appendBatchLocked(g, &packed, now)
	for i := range written {
		g.setAttributeLocked(attributeKey(id, partition, written[i].Key), written[i].Value)
	}
	t.scheduleAfterAppendLocked(g, now)
	pending := &pendingAppend{first: first, publish: p.publish, batch: g}
	e.commit.unlockAndCommit()
	return pending, nil
}

func checkBatch(batch *engine.MessageBatch) error {
	switch {
	case batch.Count < 1:
		return fmt.Errorf("%w: batch must have at least one message", engine.ErrInvalid)
	case batch.Format == internalFormat:
		return fmt.Errorf("%w: batch has no format", engine.ErrInvalid)
	case len(batch.Body) > maxAppendBytes:
		return fmt.Errorf("%w: batch has %d bytes, at most %d are allowed", engine.ErrTooLarge, len(batch.Body),
			maxAppendBytes)
	}
	return nil
}

func checkAttributes(attributes []engine.Attribute) ([]engine.Attribute, error) {
	for i := range attributes {
		if len(attributes[i].Key) > engine.MaxAttributeBytes || len(attributes[i].Value) > engine.MaxAttributeBytes {
			return nil, fmt.Errorf("%w: attribute has a key of %d and a value of %d bytes, at most %d are allowed",
				engine.ErrTooLarge,
				len(attributes[i].Key), len(attributes[i].Value), engine.MaxAttributeBytes)
		}
	}
	return attributes, nil
}

// appendBatchLocked adds a batch of messages to the commit batch and returns its first
// entry. The caller holds committer.mu.
func (p *partition) appendBatchLocked(g *commitBatch, r *packedBatch, now int64) (first uint64) {
	size := r.size()
	first = p.next
	p.next += uint64(r.count)
	p.cum += int64(size)
	p.topic.storeLocked(int64(size))
	p.publish = max(p.publish, now)
	p.maxTime = max(p.maxTime, r.maxTime)
	if !p.hasBatches.Load() {
		g.setLocked(partitionKey(ofBatches, p.topic.id, p.index), nil)
		p.hasBatches.Store(true)
	}
	era := p.enterEraLocked(g, first, size)
	op := g.batch.SetDeferred(messageKeyLen, size)
	putMessageKey(op.Key, era, p.topic.id, p.index, p.next-1)
	r.put(op.Key, op.Value, p.publish, p.cum, p.maxTime)
	_ = op.Finish()
	g.bytes += messageKeyLen + size
	p.recordEndLocked(g)
	return first
}

// recordEndLocked records the end of the partition in the commit batch. The caller holds
// committer.mu.
func (p *partition) recordEndLocked(g *commitBatch) {
	if p.lastCommit != g {
		p.lastCommit, p.endIndex = g, len(g.partitions)
		g.partitions = append(g.partitions, partitionEnd{part: p})
		g.pinLocked(p.topic)
	}
	g.partitions[p.endIndex] = partitionEnd{part: p, next: p.next, cum: p.cum, publish: p.publish}
}
