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

// packedRun is a batch that is encoded except for the values that depend on its entry.
type packedRun struct {
	format  engine.RunFormat
	count   int32
	maxTime int64
	body    []byte
	sum     uint32
}

func (r *packedRun) size() int { return recordHeaderLen + runHeadLen + len(r.body) }

func packRun(run *engine.Run) packedRun {
	return packedRun{
		format: run.Format, count: run.Count, maxTime: run.MaxTime, body: run.Body,
		sum: crc32.Update(0, castagnoli, run.Body),
	}
}

// put writes the batch into value, which has exactly size bytes.
func (r *packedRun) put(key, value []byte, publish, cum, maxTime int64) {
	value[4] = 0
	body := putHead(value, extraRun, publish, cum, maxTime)
	more := value[recordHeaderLen+maxTimeLen:]
	more[0] = byte(r.format)
	binary.LittleEndian.PutUint32(more[1:], uint32(r.count))
	binary.LittleEndian.PutUint64(more[5:], uint64(r.maxTime))
	copy(value[body:], r.body)
	seal(key, value, body, r.sum)
}

// ticket implements engine.Ticket.
type ticket struct {
	first   uint64
	publish int64
	group   *group
}

func (t *ticket) First() uint64                  { return t.first }
func (t *ticket) PublishTime() int64             { return t.publish }
func (t *ticket) Wait(ctx context.Context) error { return t.group.wait(ctx) }

// AppendRun implements engine.Runs.
func (e *Engine) AppendRun(ctx context.Context, id engine.TopicID, partition int32, run engine.Run,
	sides func(first uint64) []engine.Side,
) (engine.Ticket, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := checkRun(&run); err != nil {
		return nil, err
	}
	if err := e.takesMessages(); err != nil {
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
	packed := packRun(&run)
	size := packed.size()
	if err := t.checkQuota(int64(size)); err != nil {
		return nil, err
	}
	need := size + messageKeyLen + 32
	now := time.Now().UnixMilli()
	g, err := e.commit.lockWithRoom(ctx, need)
	if err != nil {
		return nil, err
	}
	if err := t.acceptsLocked(); err != nil {
		e.commit.unlock()
		return nil, err
	}
	var written []engine.Side
	if sides != nil {
		if written, err = checkSides(sides(p.next)); err != nil {
			e.commit.unlock()
			return nil, err
		}
	}
	first := p.appendRunLocked(g, &packed, now)
	for i := range written {
		g.setSide(sideKey(id, partition, written[i].Key), written[i].Value)
	}
	t.scheduleAfterAppendLocked(g, now)
	placed := &ticket{first: first, publish: p.publish, group: g}
	e.commit.unlockAndCommit()
	return placed, nil
}

func checkRun(run *engine.Run) error {
	switch {
	case run.Count < 1:
		return fmt.Errorf("%w: batch must have at least one message", engine.ErrInvalid)
	case run.Format == neutralRun:
		return fmt.Errorf("%w: batch has no format", engine.ErrInvalid)
	case len(run.Body) > maxAppendBytes:
		return fmt.Errorf("%w: batch has %d bytes, at most %d are allowed", engine.ErrTooLarge, len(run.Body),
			maxAppendBytes)
	}
	return nil
}

func checkSides(sides []engine.Side) ([]engine.Side, error) {
	for i := range sides {
		if len(sides[i].Key) > engine.MaxSide || len(sides[i].Value) > engine.MaxSide {
			return nil, fmt.Errorf("%w: attribute has a key of %d and a value of %d bytes, at most %d are allowed",
				engine.ErrTooLarge,
				len(sides[i].Key), len(sides[i].Value), engine.MaxSide)
		}
	}
	return sides, nil
}

// appendRunLocked adds a batch of messages to the commit batch and returns its first
// entry. The caller holds committer.mu.
func (p *partition) appendRunLocked(g *group, r *packedRun, now int64) (first uint64) {
	size := r.size()
	first = p.next
	p.next += uint64(r.count)
	p.cum += int64(size)
	p.topic.storeLocked(int64(size))
	p.publish = max(p.publish, now)
	p.maxTime = max(p.maxTime, r.maxTime)
	if !p.hasRuns.Load() {
		g.set(partitionKey(ofRuns, p.topic.id, p.index), nil)
		p.hasRuns.Store(true)
	}
	era := p.enterEraLocked(g, first, size)
	op := g.batch.SetDeferred(messageKeyLen, size)
	putMessageKey(op.Key, era, p.topic.id, p.index, p.next-1)
	r.put(op.Key, op.Value, p.publish, p.cum, p.maxTime)
	_ = op.Finish()
	g.bytes += messageKeyLen + size
	p.touchLocked(g)
	return first
}

// touchLocked records the end of the partition in the commit batch. The caller holds
// committer.mu.
func (p *partition) touchLocked(g *group) {
	if p.group != g {
		p.group, p.touch = g, len(g.touched)
		g.touched = append(g.touched, touch{part: p})
		g.pin(p.topic)
	}
	g.touched[p.touch] = touch{part: p, next: p.next, cum: p.cum, publish: p.publish}
}
