package pebble

import (
	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/engine"
)

// merger walks several partitions in the order of publish times.
type merger struct {
	walks []*walk
	cur   *walk
	err   error
}

// walk is a place in one partition.
type walk struct {
	part  *partition
	iter  *cdb.Iterator
	spans []span // still to be walked, after the one the iterator is in
	from  uint64 // entries before are not wanted
	entry uint64 // where it is
	last  uint64 // last entry of the value that the iterator is at
	value recordHead
	head  recordHead // of the entry
	run   *splitRun  // the value taken apart, once somebody wanted a record of it
	ok    bool
}

// merge starts a walk over durable messages, from an entry in each partition.
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
		w := &walk{part: p, iter: iter, spans: spans[1:], from: entry}
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

// load notes the record that a walk has come to, going on to the next era when
// one has ended.
func (m *merger) load(w *walk, ok bool) {
	for !ok {
		if err := w.iter.Error(); err != nil || len(w.spans) == 0 {
			m.fail(storeError(err))
			w.ok = false
			return
		}
		b := w.part.bounds(w.spans[0])
		w.spans = w.spans[1:]
		w.iter.SetBounds(b.LowerBound, b.UpperBound)
		ok = w.iter.First()
	}
	w.ok = true
	value, err := w.iter.ValueAndErr()
	if err != nil {
		m.fail(storeError(err))
		w.ok = false
		return
	}
	// A damaged record keeps its place; whoever wants it gets the error.
	w.last, w.run = messageEntry(w.iter.Key()), nil
	if w.value, err = verify(w.iter.Key(), value); err != nil {
		w.value = recordHead{size: int64(len(value)), count: 1}
	}
	first := w.last + 1 - w.value.count
	w.goTo(max(first, w.from))
}

// goTo moves a walk to an entry of the value that its iterator is at.
func (w *walk) goTo(entry uint64) {
	w.entry = entry
	w.head = w.value.at(entry - (w.last + 1 - w.value.count))
}

func (m *merger) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// next goes to the next record and returns where it is.
func (m *merger) next() (*partition, uint64, bool) {
	if m.cur != nil {
		if w := m.cur; w.entry < w.last {
			w.goTo(w.entry + 1)
		} else {
			m.load(w, w.iter.Next())
		}
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

// record decodes the record that next went to.
func (m *merger) record() (engine.Record, error) {
	w := m.cur
	value, err := w.iter.ValueAndErr()
	if err != nil {
		return engine.Record{}, storeError(err)
	}
	if !w.value.run {
		return decode(w.iter.Key(), value, engine.MessageID{Topic: w.part.topic.id, Partition: w.part.index, Entry: w.entry})
	}
	if w.run == nil {
		if w.run, err = w.part.split(w.last, w.value, value[w.value.body:]); err != nil {
			return engine.Record{}, err
		}
	}
	r, _, ok := w.run.record(w.entry)
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
