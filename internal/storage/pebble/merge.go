package pebble

import (
	"context"
	"errors"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// merger iterates over several partitions in the order of publish times.
type merger struct {
	walks []*walk
	cur   *walk
	err   error
}

// walk is the position of a merger in one partition.
type walk struct {
	part     *partition
	iter     *cdb.Iterator
	span     span   // the span of the iterator
	spans    []span // the remaining spans
	entry    uint64 // current entry: a partition has no gaps
	blockErr error  // why the entry cannot be read, when its block is damaged

	last     uint64       // last entry of the iterator's current value
	value    recordHead   // head of the value
	valueErr error        // why the value cannot be used
	head     recordHead   // head of the entry
	batch    *splitWindow // decoded part of the value, once a record of it was read
	ok       bool
}

// merge returns a merger over durable messages, from an entry on in each partition.
func (t *topic) merge(parts []*partition, from func(*partition) (uint64, error)) (*merger, error) {
	m := new(merger)
	for _, p := range parts {
		entry, err := from(p)
		if err != nil {
			m.close()
			return nil, err
		}
		spans := p.spans(entry, p.durable.Load())
		if len(spans) == 0 {
			continue
		}
		iter, err := t.e.db.NewIter(p.bounds(spans[0]))
		if err != nil {
			m.close()
			return nil, storeError(err)
		}
		w := &walk{part: p, iter: iter, span: spans[0], spans: spans[1:], entry: spans[0].from}
		m.walks = append(m.walks, w)
		m.load(w, iter.First())
	}
	return m, nil
}

func (p *partition) bounds(s span) *cdb.IterOptions {
	return &cdb.IterOptions{
		LowerBound: messageKey(s.era, p.topic.id, p.index, s.from),
		UpperBound: messageKey(s.era, p.topic.id, p.index, s.to),
	}
}

// load loads the value at the walk's iterator, and continues with the next era at the end
// of one. A damaged record keeps its entries; reading one of them returns the error.
func (m *merger) load(w *walk, ok bool) {
	for !ok {
		if err := w.iter.Error(); err != nil {
			m.loadDamaged(w, storeError(err))
			return
		}
		if len(w.spans) == 0 {
			w.ok = false
			return
		}
		w.span, w.spans = w.spans[0], w.spans[1:]
		w.entry = w.span.from
		b := w.part.bounds(w.span)
		w.iter.SetBounds(b.LowerBound, b.UpperBound)
		ok = w.iter.First()
	}
	value, err := w.iter.ValueAndErr()
	if err != nil {
		m.loadDamaged(w, storeError(err))
		return
	}
	w.ok, w.batch, w.last = true, nil, messageEntry(w.iter.Key())
	if w.value, w.valueErr = verify(w.iter.Key(), value); w.valueErr != nil {
		// The value contains all entries from the current one on, since there are no gaps.
		w.value = recordHead{
			publish: w.head.publish, size: int64(len(value)),
			count: max(w.last+1, w.entry+1) - w.entry,
		}
	}
	w.goTo(max(w.last+1-w.value.count, w.entry))
}

// goTo moves a walk to an entry of its iterator's current value.
func (w *walk) goTo(entry uint64) {
	w.entry = entry
	w.head = w.value.at(entry - (w.last + 1 - w.value.count))
}

// loadDamaged records that the block with the walk's entry cannot be read. Errors other
// than damage end the whole iteration.
func (m *merger) loadDamaged(w *walk, err error) {
	if !errors.Is(err, engine.ErrCorrupt) {
		m.err, w.ok = err, false
		return
	}
	w.ok, w.blockErr, w.last = true, w.part.recordDamage(w.entry, err), w.entry
	w.head.size = 0 // unknown; its publish time stays that of the previous record
}

// advance moves a walk to its next entry.
func (m *merger) advance(w *walk) {
	w.entry++
	if w.blockErr == nil && w.entry <= w.last {
		w.goTo(w.entry)
		return
	}
	if w.blockErr == nil {
		m.load(w, w.iter.Next())
		return
	}
	w.blockErr = nil
	ok := w.entry < w.span.to && w.iter.SeekGE(messageKey(w.span.era, w.part.topic.id, w.part.index, w.entry))
	m.load(w, ok)
}

// next moves to the next record and returns its partition and entry.
func (m *merger) next() (*partition, uint64, bool) {
	if m.cur != nil {
		m.advance(m.cur)
		m.cur = nil
	}
	if m.err != nil {
		return nil, 0, false
	}
	for _, w := range m.walks {
		if w.ok && (m.cur == nil || w.head.publish < m.cur.head.publish) {
			m.cur = w
		}
	}
	if m.cur == nil {
		return nil, 0, false
	}
	return m.cur.part, m.cur.entry, true
}

// record decodes the current record.
func (m *merger) record(ctx context.Context) (engine.Record, error) {
	w := m.cur
	if w.blockErr != nil {
		return engine.Record{}, w.blockErr
	}
	value, err := w.iter.ValueAndErr()
	if err != nil {
		return engine.Record{}, w.part.recordDamage(w.entry, storeError(err))
	}
	if w.valueErr == nil && w.value.isBatch {
		return w.batchRecord(ctx, value)
	}
	r, err := decode(w.iter.Key(), value, w.part.id(w.entry))
	return r, w.part.recordDamage(w.entry, err)
}

// batchRecord returns the current message of a batch.
func (w *walk) batchRecord(ctx context.Context, value []byte) (engine.Record, error) {
	if !w.batch.contains(w.entry) {
		batch, err := w.part.split(ctx, w.last, w.value, value[w.value.body:], w.entry)
		if err != nil {
			return engine.Record{}, w.part.recordDamage(w.entry, err)
		}
		w.batch = batch
	}
	r, _, ok := w.batch.record(w.entry)
	if !ok {
		return engine.Record{}, cdb.ErrNotFound
	}
	return r, nil
}

func (m *merger) close() {
	for _, w := range m.walks {
		_ = w.iter.Close()
	}
}
