package pebble

import (
	"errors"
	"fmt"

	"freshet/internal/storage/engine"
)

// splitCacheBytes limits the memory for decoded batches of all stores that share a
// cache.
const splitCacheBytes = 32 << 20

// splitKey identifies a batch of a store.
type splitKey struct {
	e    *Engine
	part int32
	id   engine.TopicID
	last uint64
}

// splitBatch is a decoded batch.
type splitBatch struct {
	first   uint64
	head    recordHead
	records []*engine.Record // nil for messages that the batch no longer contains
}

var (
	errBatchLength = fmt.Errorf("%w: messages of a batch do not add up to its length", engine.ErrCorrupt)
	errNoSplitter  = errors.New("store has batches of the Kafka protocol, but was opened without a Splitter")
)

func (p *partition) splitKey(last uint64) splitKey {
	return splitKey{p.topic.e, p.index, p.topic.id, last}
}

// split returns the messages of a batch. The result is cached, because consumers read a
// batch message by message.
func (p *partition) split(last uint64, head recordHead, body []byte) (*splitBatch, error) {
	e := p.topic.e
	key := p.splitKey(last)
	if batch, ok := e.splits.Get(key); ok {
		return batch, nil
	}
	batch := &splitBatch{first: last - head.count + 1, head: head, records: make([]*engine.Record, head.count)}
	body = append([]byte(nil), body...)
	err := e.splitBody(head.format, body, func(i int32, m *engine.Message) error {
		if i < 0 || uint64(i) >= head.count {
			return errBatchLength
		}
		batch.records[i] = &engine.Record{
			Message: *m, PublishTime: head.publish, Run: head.format,
			ID: p.id(batch.first + uint64(i)),
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: batch of %d messages cannot be decoded: %w", engine.ErrCorrupt, head.count, err)
	}
	return e.splits.Add(key, batch, int64(len(body))+int64(head.count)*256), nil
}

func (e *Engine) splitBody(format engine.BatchFormat, body []byte, each func(i int32, m *engine.Message) error) error {
	if format == internalFormat {
		return splitInternalBatch(body, each)
	}
	if e.opts.Splitter == nil {
		return errNoSplitter
	}
	return e.opts.Splitter.Split(format, body, each)
}

// contains reports whether the batch contains the entry.
func (r *splitBatch) contains(entry uint64) bool {
	return r != nil && entry >= r.first && entry < r.first+r.head.count
}

// record returns a message of the batch and its share of the stored bytes. The caller
// owns the record but must not change its payload.
func (r *splitBatch) record(entry uint64) (engine.Record, int64, bool) {
	i := entry - r.first
	if r.records[i] == nil {
		return engine.Record{}, 0, false
	}
	one := r.head.at(i)
	return *r.records[i], one.size, true
}
