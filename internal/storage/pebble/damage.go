package pebble

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"freshet/internal/storage/engine"
)

// damage is what an open store has found damaged in itself.
//
// One message that cannot be read is its reader's business: it is counted, and
// everything else is served. When a whole table, or what the store knows of its
// topics and journals, cannot be read, the store is not healthy.
type damage struct {
	store   atomic.Pointer[error] // first damage that makes the store unhealthy
	found   atomic.Int64
	skipped atomic.Int64

	mu       sync.Mutex // guards what follows
	messages map[engine.MessageID]damagedMessage
	tables   map[string]struct{} // looked at already
}

// damagedMessage is what was found, and when.
type damagedMessage struct {
	err error
	at  time.Time
}

// damagedFor is how long a damaged message is not read again: finding the damage
// costs Pebble up to a second of computing, and consumers try again and again.
const damagedFor = 30 * time.Second

// maxDamaged bounds the damaged messages that are remembered one by one; those
// beyond are counted each time somebody wants them.
const maxDamaged = 10_000

// damageWindow is how far around a damaged message its neighbours are asked for
// what it would have known.
const damageWindow = 4096

// id names an entry of the partition.
func (p *partition) id(entry uint64) engine.MessageID {
	return engine.MessageID{Topic: p.topic.id, Partition: p.index, Entry: entry}
}

// damaged says which message an error is about, and counts it. Errors other than
// damage stay as they are.
func (p *partition) damaged(entry uint64, err error) error {
	if err == nil || !errors.Is(err, engine.ErrCorrupt) {
		return err
	}
	id, d := p.id(entry), &p.topic.e.damage
	d.mu.Lock()
	defer d.mu.Unlock()
	old, known := d.messages[id]
	if known && errors.Is(err, old.err) {
		return err // it is the answer of before
	}
	if !known {
		d.found.Add(1)
		p.topic.e.log.Error("message is damaged; it is not delivered, and consumers can acknowledge its id to skip it",
			"topic", uint64(id.Topic), "partition", id.Partition, "entry", id.Entry, "error", err)
	}
	told := &engine.DamagedMessage{ID: id, Cause: err}
	if known || len(d.messages) < maxDamaged {
		if d.messages == nil {
			d.messages = make(map[engine.MessageID]damagedMessage)
		}
		d.messages[id] = damagedMessage{told, time.Now()}
	}
	return told
}

// known returns the damage of a message that was found a moment ago.
func (d *damage) known(id engine.MessageID) error {
	if d.found.Load() == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m, ok := d.messages[id]; ok && time.Since(m.at) < damagedFor {
		return m.err
	}
	return nil
}

// acknowledged counts the damaged messages among those that a subscription was
// told to leave behind.
func (d *damage) acknowledged(settlements []engine.Settlement) {
	if d.found.Load() == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range settlements {
		if settlements[i].Action != engine.Ack {
			continue
		}
		if _, known := d.messages[settlements[i].ID]; known {
			d.skipped.Add(1)
		}
	}
}

// DamagedMessages implements engine.Statistics.
func (e *Engine) DamagedMessages() (found, skipped int64) {
	return e.damage.found.Load(), e.damage.skipped.Load()
}

// damagedStore notes damage that concerns more than single messages, and returns
// the error as it was.
func (s *store) damagedStore(err error) error {
	if err == nil || !errors.Is(err, engine.ErrCorrupt) {
		return err
	}
	if s.damage.store.CompareAndSwap(nil, &err) {
		s.log.Error("store is damaged: stop the server, run freshet check on its data directory, and restore the "+
			"store from a backup",
			"dir", s.dir, "error", err)
	}
	return err
}

// corruptTable is what Pebble reports when it reads damaged bytes of a table. When
// the table opens, the damage is in one of its blocks, and readers hear of it.
func (s *store) corruptTable(info cdb.DataCorruptionInfo) {
	d := &s.damage
	d.mu.Lock()
	_, known := d.tables[info.Path]
	if d.tables == nil {
		d.tables = make(map[string]struct{})
	}
	d.tables[info.Path] = struct{}{}
	d.mu.Unlock()
	if known {
		return
	}
	s.log.Error("store: a file is damaged", "detail", info.String())
	if err := s.openTable(info.Path); err != nil {
		_ = s.damagedStore(fmt.Errorf("%w: %s: %w", engine.ErrCorrupt, filepath.Base(info.Path), err)) // it is noted
	}
}

// openTable reads the footer, the properties and the index of a table.
func (s *store) openTable(path string) error {
	if !strings.HasSuffix(path, ".sst") {
		return nil
	}
	return readTable(context.Background(), s.fs, path, func(r *sstable.Reader) error {
		_, err := r.Layout()
		return err
	})
}

// headNear returns what searches need of the first record in [entry, end) that is
// not damaged.
func (p *partition) headNear(entry, end uint64) (recordHead, error) {
	head, err := p.head(entry)
	for at := entry + 1; errors.Is(err, engine.ErrCorrupt) && at < min(end, entry+damageWindow); at++ {
		head, err = p.head(at)
	}
	return head, err
}

// cumBeforeDamage is cumBefore when neither the entry nor the one before it can be
// read: what is known of the nearest record before, so the bytes of the damaged
// ones are not counted.
func (p *partition) cumBeforeDamage(entry uint64) (int64, error) {
	first, firstCum := p.first.Load(), p.firstCum.Load()
	var err error
	for at := entry - 1; at > first && at+damageWindow > entry; at-- {
		var head recordHead
		if head, err = p.head(at - 1); err == nil {
			return head.cum, nil
		}
		if errors.Is(err, cdb.ErrNotFound) {
			break
		}
	}
	if err == nil || errors.Is(err, cdb.ErrNotFound) || entry-first <= damageWindow {
		return firstCum, nil
	}
	return 0, err
}
