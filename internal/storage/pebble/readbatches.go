package pebble

import (
	"context"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// ReadBatches implements engine.Batches.
func (e *Engine) ReadBatches(ctx context.Context, id engine.TopicID, partition int32, from uint64,
	visit func(*engine.StoredValue) (bool, error),
) (engine.Extent, error) {
	p, err := e.beginPartition(ctx, id, partition)
	if err != nil {
		return engine.Extent{}, err
	}
	defer p.topic.end()
	extent := engine.Extent{First: p.first.Load(), Next: p.durable.Load()}
	if visit == nil || from >= extent.Next {
		return extent, nil
	}
	from = max(from, extent.First)
	if known := e.damage.recent(p.id(from)); known != nil {
		return extent, known
	}
	w := storedScan{p: p, visit: visit, next: from}
	err = w.scan(ctx, from, extent.Next)
	return extent, p.recordDamage(w.next, err)
}

// storedScan visits the stored values of a partition in order.
type storedScan struct {
	p     *partition
	visit func(*engine.StoredValue) (bool, error)
	from  uint64
	next  uint64 // the entry after those that were visited
	ended bool
}

// scan visits the stored values of the entries [from, to).
func (w *storedScan) scan(ctx context.Context, from, to uint64) error {
	w.from = from
	return w.p.eachValue(from, to, func(key, value []byte) (bool, error) {
		if err := w.visitValue(ctx, key, value); err != nil {
			return false, err
		}
		return !w.ended, ctx.Err()
	})
}

// eachValue calls visit for the stored values of the entries [from, to), until it returns
// false.
func (p *partition) eachValue(from, to uint64, visit func(key, value []byte) (more bool, err error)) error {
	var iter *cdb.Iterator
	defer func() {
		if iter != nil {
			_ = iter.Close()
		}
	}()
	for _, s := range p.spans(from, to) {
		b := p.bounds(s)
		if iter == nil {
			var err error
			if iter, err = p.topic.e.db.NewIter(b); err != nil {
				return storeError(err)
			}
		} else {
			iter.SetBounds(b.LowerBound, b.UpperBound)
		}
		for ok := iter.First(); ok; ok = iter.Next() {
			value, err := iter.ValueAndErr()
			if err != nil {
				return storeError(err)
			}
			if more, err := visit(iter.Key(), value); err != nil || !more {
				return err
			}
		}
		if err := iter.Error(); err != nil {
			return storeError(err)
		}
	}
	return nil
}

// visitValue visits one stored value.
func (w *storedScan) visitValue(ctx context.Context, key, value []byte) error {
	head, err := verify(key, value)
	if err != nil {
		return err
	}
	last := messageEntry(key)
	stored := engine.StoredValue{First: last - head.count + 1, PublishTime: head.publish}
	switch {
	case !head.isBatch:
		if stored.Record, err = decode(key, value, w.p.id(last)); err != nil {
			return err
		}
	case head.format == internalFormat:
		return w.visitMessages(ctx, last, head, value[head.body:])
	default:
		stored.Run = engine.MessageBatch{
			Format: head.format, Count: int32(head.count), MaxTime: head.ownMax,
			Body: value[head.body:],
		}
	}
	more, err := w.visit(&stored)
	w.ended, w.next = !more, last+1
	return err
}

// visitMessages visits the messages of a batch in the internal format one by one.
func (w *storedScan) visitMessages(ctx context.Context, last uint64, head recordHead, body []byte) error {
	for entry := max(last+1-head.count, w.from); entry <= last; {
		window, err := w.p.split(ctx, last, head, body, entry)
		if err != nil {
			return err
		}
		for i := range window.records {
			r := &window.records[i]
			if r.ID.Entry < entry {
				continue
			}
			more, err := w.visit(&engine.StoredValue{First: r.ID.Entry, PublishTime: r.PublishTime, Record: *r})
			if err != nil || !more {
				w.ended = true
				return err
			}
		}
		entry = window.to
	}
	w.next = last + 1
	return nil
}
