package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/base/lograte"
	"freshet/internal/storage/engine"
)

// store is an open Pebble store with the monitors of its files. Either an engine serves
// it, or it is a copy that follows the log of another member (Store).
type store struct {
	db       *cdb.DB
	dir      string
	fs       vfs.FS
	failStop *failStopFS
	health   io.Closer // reports slow writes; nil in memory
	log      *slog.Logger
	opts     Options
	logged   bool // the store has an external log, and Pebble writes none

	disk   diskSpace
	damage damage
	copy   copyState
	tables tableRetry

	content atomic.Pointer[Content] // that is awaited or held; nil for none

	endOnce sync.Once
	ending  chan struct{} // closed when the store is about to be closed

	served atomic.Pointer[Engine] // the engine on the store, which fail stops
	cause  atomic.Pointer[error]  // why the store failed
	failed chan struct{}          // closed when cause is set
}

func openStore(dir string, opts Options, logged bool) (*store, error) {
	opts = opts.withDefaults()
	s := &store{
		dir:    dir,
		fs:     opts.FS,
		log:    opts.Logger,
		opts:   opts,
		logged: logged,
		ending: make(chan struct{}),
		failed: make(chan struct{}),
	}
	s.damage.lines = lograte.New(lograte.Policy{Interval: time.Minute})
	s.tables.s, s.disk.s, s.copy.damaged = s, s, make(chan struct{})
	db, err := s.open()
	if err != nil {
		if s.health != nil {
			err = errors.Join(err, s.health.Close())
		}
		return nil, err
	}
	s.db = db
	s.failStop.active.Store(true)
	s.disk.start()
	return s, nil
}

// serve sets the engine that serves the store, nil for none.
func (s *store) serve(e *Engine) {
	s.served.Store(e)
	if e != nil && s.fault() != nil {
		e.stop(engine.ErrFailed)
	}
	if e != nil && s.copy.found.Load() != nil {
		e.stop(engine.ErrNotOwner)
	}
}

// fail stops the store and its engine permanently: nothing is acknowledged any more.
func (s *store) fail(err error) {
	if !s.cause.CompareAndSwap(nil, &err) {
		return
	}
	close(s.failed)
	s.log.Error("engine stopped after a failed write; repair the disk and restart the server",
		slog.String("dir", s.dir), slog.Any("error", err))
	if e := s.served.Load(); e != nil {
		e.stop(engine.ErrFailed)
	}
}

// fault returns why the store failed, or nil.
func (s *store) fault() error {
	if p := s.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// failure returns fault as an ErrFailed for callers.
func (s *store) failure() error {
	if err := s.fault(); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrFailed, err)
	}
	return nil
}

// end announces that the store is about to be closed.
func (s *store) end() { s.endOnce.Do(func() { close(s.ending) }) }

// close closes Pebble. A failed store is not closed, because goroutines of Pebble block
// in it forever; its file lock is held until the process ends.
func (s *store) close() error {
	s.end()
	s.disk.close()
	s.failStop.active.Store(false)
	if s.fault() != nil {
		return engine.ErrFailed
	}
	if held := s.content.Load(); held != nil {
		held.Close() // Pebble counts an open snapshot as an error
	}
	spoiled := s.copy.found.Load() != nil // it is replaced as a whole
	if size := s.db.Metrics().MemTable.Size; (size > closeFlushBytes || s.logged) && !s.disk.full() && !spoiled {
		s.flushForClose()
	}
	var err error
	if err = errors.Join(err, s.db.Close()); err == nil && !s.unproven() {
		if err := recordClose(s.fs, s.dir); err != nil { // for example on a full disk; the store is intact
			s.log.Warn("store is closed, but its file checksums could not be recorded; the next start scans its logs",
				slog.String("dir", s.dir), slog.Any("error", err))
		}
	}
	if s.health != nil {
		err = errors.Join(err, s.health.Close())
	}
	return err
}

// closeFlushTimeout is the timeout of the flush before a store is closed. Pebble retries a
// failing flush forever, for example on a full disk.
const closeFlushTimeout = 2 * time.Second

// flushForClose flushes the memtable, so that the next start need not replay the log.
// Data that is not flushed before the timeout stays in the log.
func (s *store) flushForClose() {
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return
	}
	timer := time.NewTimer(closeFlushTimeout)
	defer timer.Stop()
	select {
	case <-flushed:
	case <-timer.C:
		s.log.Warn("store is closed without a flush; the next start replays its log", slog.String("dir", s.dir))
	}
}

// get reads a value and verifies its checksum; cdb.ErrNotFound when the key does not exist.
func (s *store) get(key []byte) ([]byte, error) {
	value, closer, err := s.db.Get(key)
	if err != nil {
		if errors.Is(err, cdb.ErrNotFound) {
			return nil, cdb.ErrNotFound
		}
		return nil, s.recordStoreDamage(storeError(err))
	}
	defer closer.Close()
	body, err := checkChecksum(key, value)
	if err != nil {
		return nil, s.recordStoreDamage(err)
	}
	return append([]byte(nil), body...), nil
}

// scan calls visit for every value whose key starts with prefix, and verifies the
// checksums.
func (s *store) scan(prefix []byte, visit func(key, body []byte) error) error {
	return s.scanRange(prefix, after(prefix), visit)
}

// scanRange is scan for the keys [start, end).
func (s *store) scanRange(start, end []byte, visit func(key, body []byte) error) error {
	return s.eachValue(start, end, func(key, value []byte) (bool, error) {
		body, err := checkChecksum(key, value)
		if err != nil {
			return false, s.recordStoreDamage(err)
		}
		return true, visit(key, body)
	})
}

// eachValue calls visit for the keys [start, end) and their values until visit returns false or
// an error. It does not verify the checksums.
func (s *store) eachValue(start, end []byte, visit func(key, value []byte) (more bool, err error)) error {
	iter, err := s.iterate(start, end)
	if err != nil {
		return err
	}
	defer iter.Close()
	for ok := iter.First(); ok; ok = iter.Next() {
		value, err := iter.ValueAndErr()
		if err != nil {
			return s.recordStoreDamage(storeError(err))
		}
		if more, err := visit(iter.Key(), value); err != nil || !more {
			return err
		}
	}
	return s.iterError(iter)
}

// lastKey returns the last of the keys [start, end), or nil when there is none.
func (s *store) lastKey(start, end []byte) (key []byte, err error) {
	iter, err := s.iterate(start, end)
	if err != nil {
		return nil, err
	}
	defer iter.Close()
	if iter.Last() {
		key = bytes.Clone(iter.Key())
	}
	return key, s.iterError(iter)
}

// iterate returns an iterator over the keys [start, end), which the caller closes.
func (s *store) iterate(start, end []byte) (*cdb.Iterator, error) {
	iter, err := s.db.NewIter(&cdb.IterOptions{LowerBound: start, UpperBound: end})
	return iter, s.recordStoreDamage(storeError(err))
}

// iterError returns the error of an iterator at its end.
func (s *store) iterError(iter *cdb.Iterator) error {
	return s.recordStoreDamage(storeError(iter.Error()))
}

// storeError wraps errors that damaged files cause in engine.ErrCorrupt.
func storeError(err error) error {
	if fileDamaged(err) {
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return err
}
