package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/engine"
	"freshet/internal/lru"
)

// Engine is an open store.
type Engine struct {
	db       *cdb.DB
	dir      string
	fs       vfs.FS
	failStop *failStopFS
	health   io.Closer // watches for slow writes; nil in memory
	log      *slog.Logger
	opts     Options

	commit      committer
	eras        eraCounter
	topics      topicTable
	totals      totals
	clock       clock
	trimmer     trimmer
	deadLetters deadLetterMover
	reclaim     reclaimer
	disk        diskSpace
	journal     journalTable
	splits      *lru.Cache[splitKey, *splitRun]
	damage      damage
	tables      tableRetry

	opened  time.Time
	ops     atomic.Int64  // calls inside
	drained chan struct{} // signalled when ops reaches 0 while closing
	closing chan struct{}
	closed  atomic.Bool
	closeMu sync.Mutex
	ended   bool

	cause  atomic.Pointer[error] // what broke the engine
	failed chan struct{}         // closed with it
}

var _ engine.Engine = (*Engine)(nil)

// Open opens the store in dir, creating it when it is new.
func Open(dir string, opts Options) (*Engine, error) {
	opts = opts.withDefaults()
	e := &Engine{
		dir:     dir,
		fs:      opts.FS,
		log:     opts.Logger,
		opts:    opts,
		opened:  time.Now(),
		drained: make(chan struct{}, 1),
		closing: make(chan struct{}),
		failed:  make(chan struct{}),
	}
	if opts.Cache != nil {
		e.splits = opts.Cache.splits
	} else {
		e.splits = lru.New[splitKey, *splitRun](splitCacheBytes)
	}
	e.tables.e, e.disk.e = e, e
	db, err := e.openStore()
	if err != nil {
		return nil, err
	}
	e.db = db
	e.failStop.active.Store(true)
	e.commit.start(e)
	if err := errors.Join(e.checkFormat(), e.eras.start(e)); err != nil {
		return nil, errors.Join(err, e.closeStore())
	}
	e.topics.start(e)
	e.journal.start(e)
	e.clock.start(e)
	e.disk.start()
	e.reclaim.start(e)
	e.deadLetters.start(e)
	e.trimmer.start(e)
	return e, nil
}

// get reads a value and checks its checksum; cdb.ErrNotFound when there is none.
func (e *Engine) get(key []byte) ([]byte, error) {
	value, closer, err := e.db.Get(key)
	if err != nil {
		if errors.Is(err, cdb.ErrNotFound) {
			return nil, cdb.ErrNotFound
		}
		return nil, e.damagedStore(storeError(err))
	}
	defer closer.Close()
	body, err := checkChecksum(key, value)
	if err != nil {
		return nil, e.damagedStore(err)
	}
	return append([]byte(nil), body...), nil
}

// scan calls visit for every value with a checksum whose key starts with
// prefix.
func (e *Engine) scan(prefix []byte, visit func(key, body []byte) error) error {
	return e.scanRange(prefix, after(prefix), visit)
}

func (e *Engine) scanRange(start, end []byte, visit func(key, body []byte) error) error {
	iter, err := e.db.NewIter(&cdb.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return e.damagedStore(storeError(err))
	}
	defer iter.Close()
	for ok := iter.First(); ok; ok = iter.Next() {
		value, err := iter.ValueAndErr()
		if err != nil {
			return e.damagedStore(storeError(err))
		}
		body, err := checkChecksum(iter.Key(), value)
		if err != nil {
			return e.damagedStore(err)
		}
		if err := visit(iter.Key(), body); err != nil {
			return err
		}
	}
	return e.damagedStore(storeError(iter.Error()))
}

// storeError says in the seam's words what Pebble found damaged.
func storeError(err error) error {
	if err != nil && cdb.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return err
}

// enter counts a call in; every enter that returns nil needs a leave.
func (e *Engine) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err // nobody waits for the answer, so do not begin
	}
	e.ops.Add(1)
	if e.closed.Load() {
		e.leave()
		return engine.ErrClosed
	}
	if e.cause.Load() != nil {
		e.leave()
		return engine.ErrFailed
	}
	return nil
}

func (e *Engine) leave() {
	if e.ops.Add(-1) == 0 && e.closed.Load() {
		select {
		case e.drained <- struct{}{}:
		default:
		}
	}
}

// fail stops the engine for good: nothing is acknowledged any more.
func (e *Engine) fail(err error) {
	if !e.cause.CompareAndSwap(nil, &err) {
		return
	}
	close(e.failed)
	e.log.Error("engine stopped after a failed write; repair the disk and restart the server", "dir", e.dir, "error", err)
	e.commit.fail()
}

// fault returns what broke the engine, or nil.
func (e *Engine) fault() error {
	if p := e.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// Health implements engine.Engine.
func (e *Engine) Health() error {
	if e.closed.Load() {
		return engine.ErrClosed
	}
	if err := e.fault(); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrFailed, err)
	}
	if p := e.damage.store.Load(); p != nil {
		return *p
	}
	return nil
}

// Close implements engine.Engine.
func (e *Engine) Close() error {
	e.closeMu.Lock()
	defer e.closeMu.Unlock()
	if e.ended {
		return nil
	}
	e.ended = true
	e.closed.Store(true)
	close(e.closing)
	for e.ops.Load() > 0 {
		<-e.drained
	}
	e.trimmer.close()
	e.deadLetters.close()
	e.disk.close()
	e.clock.close()
	e.reclaim.close()
	if err := e.closeStore(); err != nil {
		return fmt.Errorf("close %s: %w", e.dir, err)
	}
	return nil
}

// closeStore flushes the last group and closes Pebble. A store that has failed
// is left alone: goroutines of Pebble wait inside it for ever, and its lock is
// held until the process ends.
func (e *Engine) closeStore() error {
	if e.fault() == nil {
		e.commit.close()
	}
	e.failStop.active.Store(false)
	if e.fault() != nil {
		return engine.ErrFailed
	}
	if e.db.Metrics().MemTable.Size > replayWorthwhile && !e.disk.full() {
		e.flushForClose()
	}
	var err error
	if err = errors.Join(err, e.db.Close()); err == nil {
		if err := noteClose(e.fs, e.dir); err != nil { // a full disk, say; the store itself is whole
			e.log.Warn("store is closed, and its files could not be noted", "dir", e.dir, "error", err)
		}
	}
	if e.health != nil {
		err = errors.Join(err, e.health.Close())
	}
	return err
}

// flushPatience bounds the flush before a store is closed: one that fails, as on a
// full disk, is tried again for ever.
const flushPatience = 2 * time.Second

// flushForClose spares the next start the replay of the log. What is not flushed
// by then is in the log.
func (e *Engine) flushForClose() {
	flushed, err := e.db.AsyncFlush()
	if err != nil {
		return
	}
	timer := time.NewTimer(flushPatience)
	defer timer.Stop()
	select {
	case <-flushed:
	case <-timer.C:
		e.log.Warn("store is closed without a flush; the next start replays its log", "dir", e.dir)
	}
}
