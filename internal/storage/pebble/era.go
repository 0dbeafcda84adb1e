package pebble

import (
	"errors"
	"slices"
	"sort"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/base/wire"
)

// Eras keep write amplification low. If messages were sorted by topic alone, every flush
// of a store with many topics would overlap the whole key range of the tree, and each
// message would be rewritten once per level. So the store counts eras, a new one for
// every EraBytes of messages, and a message's key starts with its era. Within an era
// messages are sorted by topic, which makes them cheap to read and to trim by range. Eras
// do not overlap, so compactions do not rewrite old ones. A small key per partition and
// era stores the first entry of the partition in that era. The figures are in docs/adr
// (message eras); BenchmarkWriteAmplification measures them.

// eraStart is the first entry of a partition in an era.
type eraStart struct {
	era   uint32
	first uint64
}

// eraCounter counts the eras of a store, of both classes in one sequence (eraclass.go).
// Protected by committer.mu.
type eraCounter struct {
	current [eraClasses]uint32 // the era in which values of a class are written
	written [eraClasses]int64  // bytes in it
	stored  uint32             // the largest era in use, which the store knows (keyEraNow)
	limit   int64
}

// start reads the largest era of the store.
func (c *eraCounter) start(e *Engine) error {
	c.limit = e.opts.EraBytes
	body, err := e.get([]byte{keyEraNow})
	switch {
	case errors.Is(err, cdb.ErrNotFound):
		c.resume(1)
		return nil
	case err != nil:
		return err
	}
	u := unpack(body)
	if newest := uint32(u.Uvarint()); u.Err() == nil {
		c.resume(newest)
	}
	return u.Err()
}

// resume continues after the largest era of the store: its class stays in it, and the other
// class takes the largest era below it that is of its class.
func (c *eraCounter) resume(newest uint32) {
	c.stored = newest
	for class := range eraClass(eraClasses) {
		switch {
		case classOf(newest) == class:
			c.current[class] = newest
		case newest < erasPerClass:
			c.current[class] = erasPerClass
		default:
			c.current[class] = newest/erasPerClass*erasPerClass - 1
		}
	}
}

// continuesLocked reports whether an era still takes messages. The caller holds
// committer.mu.
func (c *eraCounter) continuesLocked(era uint32) bool {
	class := classOf(era)
	return c.current[class] == era && c.written[class] < c.limit
}

// enterLocked returns the era for values of a class in a partition whose last era is given,
// 0 for none. The eras of a partition are ascending, so that its entries are ordered as they
// are. The caller holds committer.mu.
func (c *eraCounter) enterLocked(g *commitBatch, class eraClass, last uint32) uint32 {
	if c.written[class] >= c.limit || c.current[class] < last {
		c.current[class] = nextEra(c.stored, class)
		c.written[class] = 0
	}
	era := c.current[class]
	if era > c.stored {
		c.stored = era
		var p wire.Writer
		p.Uvarint(uint64(era))
		g.setLocked([]byte{keyEraNow}, p)
	}
	return era
}

// enterEraLocked returns the era for the partition's next entry, and stores the entry when
// it is the partition's first in that era. A partition stays in an era until the era ends,
// except that it leaves an era that is compressed with the first value that should not be. So a
// partition has at most one era of a class for each era of the store. The caller holds
// committer.mu.
func (p *partition) enterEraLocked(g *commitBatch, entry uint64, size int, class eraClass) uint32 {
	counter := &p.topic.e.eras
	eras := *p.eras.Load()
	last := uint32(0)
	if n := len(eras); n > 0 {
		last = eras[n-1].era
	}
	if last != 0 && counter.continuesLocked(last) && classOf(last) >= class {
		counter.written[classOf(last)] += int64(size)
		return last
	}
	era := counter.enterLocked(g, class, last)
	counter.written[class] += int64(size)
	grown := append(eras, eraStart{era, entry}) // readers of the shorter slice do not see it
	p.eras.Store(&grown)
	var body wire.Writer
	body.Uvarint(entry)
	g.setLocked(eraKey(p.topic.id, p.index, era), body)
	return era
}

// eraOf returns the era of an entry, or 0, which contains no messages, when it has none.
func (p *partition) eraOf(entry uint64) uint32 {
	eras := *p.eras.Load()
	// Most lookups are for the newest era.
	if n := len(eras); n > 0 && eras[n-1].first <= entry {
		return eras[n-1].era
	}
	i := sort.Search(len(eras), func(i int) bool { return eras[i].first > entry })
	if i == 0 {
		return 0
	}
	return eras[i-1].era
}

// span is a range of consecutive entries in one era.
type span struct {
	era      uint32
	from, to uint64
}

// spans splits the entries [from, to) by era.
func (p *partition) spans(from, to uint64) (out []span) {
	eras := *p.eras.Load()
	for i, s := range eras {
		end := to
		if i+1 < len(eras) {
			end = min(to, eras[i+1].first)
		}
		if start := max(from, s.first); start < end {
			out = append(out, span{s.era, start, end})
		}
	}
	return out
}

// cutErasLocked deletes the entries [from, to) and the keys of the eras that become
// empty. It returns the eras that contained the entries. The caller holds committer.mu.
func (p *partition) cutErasLocked(g *commitBatch, from, to uint64) (cut []uint32) {
	id := p.topic.id
	for _, s := range p.spans(from, to) {
		cut = append(cut, s.era)
		g.deleteRangeLocked(messageKey(s.era, id, p.index, s.from), messageKey(s.era, id, p.index, s.to))
	}
	eras := *p.eras.Load()
	empty := 0
	for empty < len(eras) {
		end := p.next
		if empty+1 < len(eras) {
			end = eras[empty+1].first
		}
		if end > to {
			break
		}
		g.deleteLocked(eraKey(id, p.index, eras[empty].era))
		empty++
	}
	if empty > 0 {
		kept := eras[empty:]
		p.eras.Store(&kept)
	}
	return cut
}

// eras returns the eras in which the topic has entries, in ascending order.
func (t *topic) eras() []uint32 {
	var all []uint32
	for _, p := range *t.parts.Load() {
		for _, s := range *p.eras.Load() {
			all = append(all, s.era)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// restoreEra restores one stored era.
func (p *partition) restoreEra(era uint32, body []byte) error {
	u := unpack(body)
	eras := append(*p.eras.Load(), eraStart{era, u.Uvarint()})
	p.eras.Store(&eras)
	return u.Err()
}
