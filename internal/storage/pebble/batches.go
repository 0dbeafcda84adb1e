package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

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

func checkBatch(batch *engine.MessageBatch) error {
	switch {
	case batch.Count < 1:
		return fmt.Errorf("%w: batch must have at least one message", engine.ErrInvalid)
	case batch.Format == internalFormat:
		return fmt.Errorf("%w: batch has no format", engine.ErrInvalid)
	}
	return nil
}

// appendBatchLocked adds a batch of messages to the commit batch. The caller holds
// committer.mu.
func (p *partition) appendBatchLocked(g *commitBatch, r *packedBatch, now int64) {
	size := r.size()
	first := p.next
	p.next += uint64(r.count)
	p.cum += int64(size)
	p.topic.storeLocked(int64(size))
	p.publish = max(p.publish, now)
	p.maxTime = max(p.maxTime, r.maxTime)
	if !p.hasBatches.Load() {
		g.setLocked(partitionKey(ofBatches, p.topic.id, p.index), nil)
		p.hasBatches.Store(true)
	}
	era := p.enterEraLocked(g, first, size, r.class())
	op := g.batch.SetDeferred(messageKeyLen, size)
	putMessageKey(op.Key, era, p.topic.id, p.index, p.next-1)
	r.put(op.Key, op.Value, p.publish, p.cum, p.maxTime)
	_ = op.Finish()
	g.bytes += messageKeyLen + size
	p.recordEndLocked(g)
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
