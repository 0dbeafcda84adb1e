package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"freshet/internal/base/fairshare"
	"freshet/internal/base/unpacking"
	"freshet/internal/storage/engine"
)

// splitKey identifies a batch of a store.
type splitKey struct {
	e    *Engine
	part int32
	id   engine.TopicID
	last uint64
}

// splitWindow is the decoded part [from, to) of a batch. A batch can be far larger in memory than in
// the store, so it is decoded piece by piece. A window does not change once it is in the cache,
// except for its reader.
type splitWindow struct {
	key      splitKey
	head     recordHead
	first    uint64 // first entry of the batch
	from, to uint64
	// records are in the order of their entries, without messages that the batch no longer
	// contains.
	records []engine.Record
	bytes   int64 // memory of the records
	// reader continues at to, or is nil. splitCache.mu protects it once the window is cached.
	reader *batchReader
	cached cacheEntry
}

// batchReader is a reader of a batch with the batch's body.
type batchReader struct {
	engine.BatchReader
	body []byte
}

// memory returns how much memory the reader holds in bytes.
func (r *batchReader) memory() int64 {
	if r == nil {
		return 0
	}
	return r.Memory() + int64(len(r.body))
}

const (
	// recordBytes is the memory of a decoded message without its payload, key and properties. It
	// includes what the allocator rounds up.
	recordBytes = 288
	// propertyBytes is the same for a property.
	propertyBytes = 80
)

// memoryOf returns the memory of a decoded message in bytes.
func memoryOf(r *engine.Record) int64 {
	return recordBytes + int64(len(r.Properties))*propertyBytes + int64(r.Weight()) + int64(len(r.Producer))
}

var (
	errBatchLength = fmt.Errorf("%w: messages of a batch do not add up to its length", engine.ErrCorrupt)
	errNoSplitter  = errors.New("store has batches of the Kafka protocol, but was opened without a Splitter")
)

func (p *partition) splitKey(last uint64) splitKey {
	return splitKey{p.topic.e, p.index, p.topic.id, last}
}

// split decodes a batch from an entry on, as far as a window goes. Windows are cached, because
// consumers read a batch message by message. A window also keeps the reader that decoded it, so that
// the next window continues where it ended: a consumer that reads the whole batch decompresses it
// once, also if the batch is larger than the cache.
func (p *partition) split(ctx context.Context, last uint64, head recordHead, body []byte,
	entry uint64,
) (*splitWindow, error) {
	cache := p.topic.e.splits
	key := p.splitKey(last)
	if w := cache.find(key, entry); w != nil {
		return w, nil
	}
	var w *splitWindow
	decode := func(grow func(total int64) error) error {
		w = &splitWindow{key: key, head: head, first: last + 1 - head.count, from: entry, to: entry}
		err := w.decode(p, body, grow)
		if err == nil || w.reader != nil {
			cache.add(fairshare.CallerOf(ctx), w)
		}
		return err
	}
	if head.format == internalFormat { // small and not compressed, so it does not wait for memory
		err := decode(func(int64) error { return nil })
		return w, err
	}
	err := cache.budget.Do(ctx, cache.windowBytes, func(r *unpacking.Reservation) error { return decode(r.Grow) })
	return w, err
}

// decode fills an empty window. If memory is short it fills a part of the window, or returns the
// error of grow and leaves the reader in the window.
func (w *splitWindow) decode(p *partition, body []byte, grow func(total int64) error) error {
	e := p.topic.e
	if w.reader = e.splits.takeReader(w.key, w.from); w.reader == nil {
		if err := grow(int64(len(body))); err != nil {
			return err
		}
		body = append([]byte(nil), body...)
		reader, err := e.openBatch(w.head.format, body)
		if err != nil {
			return w.undecodable(err)
		}
		w.reader = &batchReader{reader, body}
		e.splits.budget.CountOpened()
	} else if err := grow(w.reader.memory()); err != nil {
		return err
	}
	for w.bytes < e.splits.windowFor(w.reader) {
		more, err := w.decodeNext(p, grow)
		if unpacking.IsShort(err) && len(w.records) > 0 {
			break
		}
		if err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
	if !e.splits.mayKeep(w.reader) {
		w.closeReader()
	}
	return nil
}

// decodeNext decodes the next message of the batch into the window.
func (w *splitWindow) decodeNext(p *partition, grow func(total int64) error) (more bool, err error) {
	held := w.bytes + int64(len(w.reader.body))
	i, m, err := w.reader.Next(int32(w.to-w.first), func(total int64) error { return grow(held + total) })
	switch {
	case errors.Is(err, io.EOF):
		w.to = w.key.last + 1
		w.closeReader()
		return false, nil
	case unpacking.IsShort(err):
		if !p.topic.e.splits.mayKeep(w.reader) {
			w.closeReader()
		}
		return false, err
	case err != nil:
		return false, w.undecodable(err)
	}
	entry := w.first + uint64(i)
	if i < 0 || uint64(i) >= w.head.count || entry < w.to {
		return false, w.undecodable(errBatchLength)
	}
	w.records = append(w.records, engine.Record{
		Message: *m, PublishTime: w.head.publish, Run: w.head.format, ID: p.id(entry),
	})
	w.bytes += memoryOf(&w.records[len(w.records)-1])
	w.to = entry + 1
	return true, grow(w.bytes + w.reader.memory())
}

func (w *splitWindow) closeReader() {
	w.reader.Close()
	w.reader = nil
}

// undecodable closes the reader and returns the error of a batch that cannot be decoded.
func (w *splitWindow) undecodable(err error) error {
	if w.reader != nil {
		w.closeReader()
	}
	return fmt.Errorf("%w: batch of %d messages cannot be decoded: %w", engine.ErrCorrupt, w.head.count, err)
}

// openBatch returns a reader of a batch. The body must not change before the reader is closed.
func (e *Engine) openBatch(format engine.BatchFormat, body []byte) (engine.BatchReader, error) {
	if format == internalFormat {
		return &internalReader{body: body}, nil
	}
	if e.opts.Splitter == nil {
		return nil, errNoSplitter
	}
	return e.opts.Splitter.Open(format, body)
}

// contains reports whether the window contains the entry.
func (w *splitWindow) contains(entry uint64) bool {
	return w != nil && entry >= w.from && entry < w.to
}

// record returns a message of the window and its share of the stored bytes. The caller
// owns the record but must not change its payload.
func (w *splitWindow) record(entry uint64) (engine.Record, int64, bool) {
	i := int(entry - w.from) // the index, unless messages are missing
	if i >= len(w.records) || w.records[i].ID.Entry != entry {
		i = sort.Search(len(w.records), func(i int) bool { return w.records[i].ID.Entry >= entry })
		if i == len(w.records) || w.records[i].ID.Entry != entry {
			return engine.Record{}, 0, false
		}
	}
	one := w.head.at(entry - w.first)
	return w.records[i], one.size, true
}
