package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"freshet/internal/base/lograte"
	"freshet/internal/storage/engine"
)

// damage records the damage that was found in an open store.
//
// A single message that cannot be read affects only its readers: it is counted, and
// everything else is served. When a whole table, or the metadata of a topic or journal,
// cannot be read, the store is unhealthy.
type damage struct {
	store   atomic.Pointer[error] // first damage that makes the store unhealthy
	found   atomic.Int64
	skipped atomic.Int64
	tables  lograte.Limiter  // reports a damaged table once
	lines   *lograte.Limiter // limits the lines about damaged messages

	mu       sync.Mutex // protects the fields below
	messages map[engine.MessageID]damagedMessage
}

// damagedMessage is the error of a damaged message, and when it was found.
type damagedMessage struct {
	err error
	at  time.Time
}

// damageCacheTTL is how long a damaged message is not read again: detecting the damage costs
// Pebble up to a second of CPU time, and consumers retry often.
const damageCacheTTL = 30 * time.Second

// maxDamaged limits the damaged messages that are remembered. Messages beyond the limit
// are counted each time they are read.
const maxDamaged = 10_000

// damageSearchWindow is how far around a damaged message its neighbours are searched for the
// values that it would have contained.
const damageSearchWindow = 4096

// id returns the message id of an entry.
func (p *partition) id(entry uint64) engine.MessageID {
	return engine.MessageID{Topic: p.topic.id, Partition: p.index, Entry: entry}
}

// recordDamage wraps the error of a damaged message in a DamagedMessage, and counts and logs
// it. It returns other errors unchanged.
func (p *partition) recordDamage(entry uint64, err error) error {
	if err == nil || !errors.Is(err, engine.ErrCorrupt) {
		return err
	}
	if err := p.topic.e.leaveDamaged(err); err != nil {
		return err
	}
	id, d := p.id(entry), &p.topic.e.damage
	d.mu.Lock()
	defer d.mu.Unlock()
	old, known := d.messages[id]
	if known && errors.Is(err, old.err) {
		return err // the remembered error was returned again
	}
	if !known {
		d.found.Add(1)
		if ok, more := d.lines.Allow("message"); ok {
			p.topic.e.log.Error("message is damaged and is not delivered; consumers can acknowledge its id to skip it",
				slog.Uint64("topic", uint64(id.Topic)), slog.Int("partition", int(id.Partition)),
				slog.Uint64("entry", id.Entry), slog.Int("not_logged", more), slog.Any("error", err))
		}
	}
	reported := &engine.DamagedMessage{ID: id, Cause: err}
	if known || len(d.messages) < maxDamaged {
		if d.messages == nil {
			d.messages = make(map[engine.MessageID]damagedMessage)
		}
		d.messages[id] = damagedMessage{reported, time.Now()}
	}
	return reported
}

// recent returns the remembered error of a damaged message, if it was found recently.
func (d *damage) recent(id engine.MessageID) error {
	if d.found.Load() == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m, ok := d.messages[id]; ok && time.Since(m.at) < damageCacheTTL {
		return m.err
	}
	return nil
}

// countSkipped counts the damaged messages among those that a consumer acknowledged.
func (d *damage) countSkipped(settlements []engine.Settlement) {
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

// recordStoreDamage records damage that affects more than single messages, and returns the
// error. A damaged file of a member's copy becomes engine.ErrNotOwner (copydamage.go).
func (s *store) recordStoreDamage(err error) error {
	if err == nil || !errors.Is(err, engine.ErrCorrupt) {
		return err
	}
	if err := s.leaveDamaged(err); err != nil {
		return err
	}
	if s.damage.store.CompareAndSwap(nil, &err) {
		s.log.Error("store is damaged: stop the server and run freshet check on its data directory, which reports "+
			"how the store is replaced", slog.String("dir", s.dir), slog.Any("error", err))
	}
	return err
}

// damagedPause is the pause after each further read of a damaged table, until the store is closed. Nobody needs
// the store any more.
const damagedPause = 100 * time.Millisecond

// corruptTable is called by Pebble when it reads a damaged table. When the table can be
// opened, the damage is in one of its blocks, and only readers of that block get errors.
func (s *store) corruptTable(info cdb.DataCorruptionInfo) {
	if first, _ := s.damage.tables.Allow(info.Path); !first {
		if s.logged {
			// Pebble reads the statistics of a table that it cannot open again and again. It holds no lock here.
			select {
			case <-s.ending:
			case <-time.After(damagedPause):
			}
		}
		return
	}
	if s.logged {
		s.spoil(filepath.Base(info.Path), info.Details)
		return
	}
	s.log.Error("store: file is damaged", slog.String("detail", info.String()))
	if err := s.openTable(info.Path); err != nil {
		// The call records the damage; its result is the same error.
		_ = s.recordStoreDamage(fmt.Errorf("%w: %s: %w", engine.ErrCorrupt, filepath.Base(info.Path), err))
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

// headNear returns the head of the first record in [entry, end) that is not damaged.
func (p *partition) headNear(entry, end uint64) (recordHead, error) {
	head, err := p.head(entry)
	for at := entry + 1; errors.Is(err, engine.ErrCorrupt) && at < min(end, entry+damageSearchWindow); at++ {
		head, err = p.head(at)
	}
	return head, err
}

// cumBeforeDamage is cumBefore when neither the entry nor the one before it can be read.
// It uses the nearest readable record before them, so the bytes of the damaged ones are
// not counted.
func (p *partition) cumBeforeDamage(entry uint64) (int64, error) {
	first, firstCum := p.first.Load(), p.firstCum.Load()
	var err error
	for at := entry - 1; at > first && at+damageSearchWindow > entry; at-- {
		var head recordHead
		if head, err = p.head(at - 1); err == nil {
			return head.cum, nil
		}
		if errors.Is(err, cdb.ErrNotFound) {
			break
		}
	}
	if err == nil || errors.Is(err, cdb.ErrNotFound) || entry-first <= damageSearchWindow {
		return firstCum, nil
	}
	return 0, err
}
