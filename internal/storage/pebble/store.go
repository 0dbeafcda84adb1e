package pebble

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// store is an open Pebble store and what watches over its files. An engine serves
// it, or it is a copy that follows the log of another member (Store).
type store struct {
	db       *cdb.DB
	dir      string
	fs       vfs.FS
	failStop *failStopFS
	health   io.Closer // watches for slow writes; nil in memory
	log      *slog.Logger
	opts     Options
	logged   bool // the write-ahead log is not Pebble's own

	disk   diskSpace
	damage damage
	tables tableRetry

	endOnce sync.Once
	ending  chan struct{} // closed when the store is about to be closed

	served atomic.Pointer[Engine] // the engine on it, told of failures
	cause  atomic.Pointer[error]  // what broke the store
	failed chan struct{}          // closed with it
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
	s.tables.s, s.disk.s = s, s
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	s.db = db
	s.failStop.active.Store(true)
	s.disk.start()
	return s, nil
}

// serve notes the engine that serves the store, nil for none.
func (s *store) serve(e *Engine) {
	s.served.Store(e)
	if e != nil && s.fault() != nil {
		e.stop(engine.ErrFailed)
	}
}

// fail stops the store and the engine on it for good: nothing is acknowledged any
// more.
func (s *store) fail(err error) {
	if !s.cause.CompareAndSwap(nil, &err) {
		return
	}
	close(s.failed)
	s.log.Error("engine stopped after a failed write; repair the disk and restart the server", "dir",
		s.dir, "error", err)
	if e := s.served.Load(); e != nil {
		e.stop(engine.ErrFailed)
	}
}

// fault returns what broke the store, or nil.
func (s *store) fault() error {
	if p := s.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// failure is fault as callers are told of it.
func (s *store) failure() error {
	if err := s.fault(); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrFailed, err)
	}
	return nil
}

// end says that the store is about to be closed.
func (s *store) end() { s.endOnce.Do(func() { close(s.ending) }) }

// close closes Pebble. A store that has failed is left alone: goroutines of Pebble
// wait inside it for ever, and its lock is held until the process ends.
func (s *store) close() error {
	s.end()
	s.disk.close()
	s.failStop.active.Store(false)
	if s.fault() != nil {
		return engine.ErrFailed
	}
	if size := s.db.Metrics().MemTable.Size; (size > replayWorthwhile || s.logged) && !s.disk.full() {
		s.flushForClose()
	}
	var err error
	if err = errors.Join(err, s.db.Close()); err == nil {
		if err := noteClose(s.fs, s.dir); err != nil { // a full disk, say; the store itself is whole
			s.log.Warn("store is closed, and its files could not be noted", "dir", s.dir, "error", err)
		}
	}
	if s.health != nil {
		err = errors.Join(err, s.health.Close())
	}
	return err
}

// flushPatience bounds the flush before a store is closed: one that fails, as on a
// full disk, is tried again for ever.
const flushPatience = 2 * time.Second

// flushForClose spares the next start the replay of the log. What is not flushed
// by then is in the log.
func (s *store) flushForClose() {
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return
	}
	timer := time.NewTimer(flushPatience)
	defer timer.Stop()
	select {
	case <-flushed:
	case <-timer.C:
		s.log.Warn("store is closed without a flush; the next start replays its log", "dir", s.dir)
	}
}

// get reads a value and checks its checksum; cdb.ErrNotFound when there is none.
func (s *store) get(key []byte) ([]byte, error) {
	value, closer, err := s.db.Get(key)
	if err != nil {
		if errors.Is(err, cdb.ErrNotFound) {
			return nil, cdb.ErrNotFound
		}
		return nil, s.damagedStore(storeError(err))
	}
	defer closer.Close()
	body, err := checkChecksum(key, value)
	if err != nil {
		return nil, s.damagedStore(err)
	}
	return append([]byte(nil), body...), nil
}

// scan calls visit for every value with a checksum whose key starts with
// prefix.
func (s *store) scan(prefix []byte, visit func(key, body []byte) error) error {
	return s.scanRange(prefix, after(prefix), visit)
}

func (s *store) scanRange(start, end []byte, visit func(key, body []byte) error) error {
	iter, err := s.db.NewIter(&cdb.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return s.damagedStore(storeError(err))
	}
	defer iter.Close()
	for ok := iter.First(); ok; ok = iter.Next() {
		value, err := iter.ValueAndErr()
		if err != nil {
			return s.damagedStore(storeError(err))
		}
		body, err := checkChecksum(iter.Key(), value)
		if err != nil {
			return s.damagedStore(err)
		}
		if err := visit(iter.Key(), body); err != nil {
			return err
		}
	}
	return s.damagedStore(storeError(iter.Error()))
}

// storeError says in the seam's words what Pebble found damaged.
func storeError(err error) error {
	if err != nil && cdb.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return err
}
