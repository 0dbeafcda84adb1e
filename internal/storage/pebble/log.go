package pebble

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// Log is an external write-ahead log, which the copies of the store on other members
// follow. A commit batch goes to the log first, and to the store only after the log has
// acknowledged it: a store is never ahead of its log.
type Log interface {
	// Append appends a batch and returns without waiting. The batch belongs to the log
	// until Wait of the result has returned. One goroutine calls it.
	Append(batch []byte) LogAppend
	// Live reports whether reads of the store are still current: no other writer can have
	// taken over the log. It is called often and must be fast.
	Live() bool
	// Full reports whether the log rejects messages, and whether it also rejects journal
	// records. It is called often and must be fast.
	Full() (messages, records bool)
	// Crowded reports whether the logs of this process have many bytes that are not
	// acknowledged yet. Then a batch is appended only when the log has acknowledged all
	// earlier ones. It is called often and must be fast.
	Crowded() bool
}

// LogAppend is an append to a Log that may not be acknowledged yet.
type LogAppend interface {
	// Wait returns the encoded log position of the batch, which the store keeps with the
	// batch, once the log has acknowledged it. An error means that this writer may not
	// append any more: the log may or may not have the batch, and has none of the later
	// ones.
	Wait() (position []byte, err error)
}

// Store is an open store with an external log. It follows that log (Apply), and an engine
// can be opened and closed on it without closing the store.
type Store struct{ s *store }

// OpenStore opens the store in dir and creates it if it does not exist. Data that was not
// flushed before a crash is lost; LogPosition returns the position after which the log has to
// be applied again. Damage of its files is a *FileDamage.
func OpenStore(dir string, opts Options) (*Store, error) {
	s, err := openStore(dir, opts, true)
	if err != nil {
		return nil, asDamage("", err)
	}
	return &Store{s}, nil
}

// LogPosition returns the log position of the last batch that was applied, nil when none was.
func (st *Store) LogPosition() ([]byte, error) {
	position, err := st.s.get([]byte{keyLogPosition})
	if errors.Is(err, cdb.ErrNotFound) {
		return nil, nil
	}
	return position, err
}

// Apply applies a batch of the log together with its log position; an empty batch changes
// only the position. The store takes ownership of the batch. Apply must not be called
// while an engine is open.
func (st *Store) Apply(batch, position []byte) (err error) {
	s := st.s
	if err := s.failure(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	if len(batch) > 0 {
		if err := b.SetRepr(batch); err != nil {
			return fmt.Errorf("%w: batch of the log cannot be decoded: %w", engine.ErrCorrupt, err)
		}
	}
	if err := s.apply(b, position); err != nil {
		return err
	}
	return b.Close()
}

// apply writes a batch and its log position atomically. Pebble panics when the manifest
// cannot be written.
func (s *store) apply(b *cdb.Batch, position []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("applying a commit batch: %v", r)
		}
	}()
	key := []byte{keyLogPosition}
	if err := b.Set(key, addChecksum(key, position), nil); err != nil {
		return fmt.Errorf("applying a commit batch: %w", err)
	}
	if err := s.db.Apply(b, cdb.NoSync); err != nil {
		return fmt.Errorf("applying a commit batch: %w", err)
	}
	if awaited := s.content.Load(); awaited != nil {
		awaited.offer(position)
	}
	return s.failure()
}

// Open opens an engine on the store that writes to the log. Closing the engine leaves the
// store open. When an append to the log fails, the engine has lost ownership: every call
// returns engine.ErrNotOwner, and after Close the store contains nothing that the log does
// not have.
func (st *Store) Open(log Log) (*Engine, error) {
	if err := st.s.failure(); err != nil {
		return nil, err
	}
	if found := st.Damage(); found != nil {
		return nil, found
	}
	e := newEngine(st.s, log)
	if err := e.start(); err != nil {
		if e.fault() == nil {
			e.commit.close()
		}
		st.s.serve(nil)
		return nil, err
	}
	return e, nil
}

// Flush makes the batches durable that were applied before the call.
func (st *Store) Flush() error {
	if err := st.s.failure(); err != nil {
		return err
	}
	if err := st.s.db.Flush(); err != nil {
		return fmt.Errorf("flushing %s: %w", st.s.dir, st.s.spoilMissing(storeError(err)))
	}
	return st.s.failure()
}

// Checkpoint writes a copy of the store to a directory that does not exist yet. The copy
// contains the batches that were applied before the call, and of those applied during it
// the ones up to one point in time.
func (st *Store) Checkpoint(dir string) error { return st.s.checkpointFlushed(dir) }

// Failed returns a channel that is closed when the store has failed.
func (st *Store) Failed() <-chan struct{} { return st.s.failed }

// End announces that the store is about to be closed: reads of a damaged table do not pause any more.
func (st *Store) End() { st.s.end() }

// Close flushes and closes the store. No engine may be open on it.
func (st *Store) Close() error {
	if err := st.s.close(); err != nil {
		return fmt.Errorf("closing %s: %w", st.s.dir, err)
	}
	return nil
}

// live returns ErrNotOwner when another writer may have taken over the log.
func (e *Engine) live() error {
	if e.commit.log != nil && !e.commit.log.Live() {
		return engine.ErrNotOwner
	}
	return nil
}

// Resign is called before Close when another member takes over the log: after Close, calls
// return ErrNotOwner instead of ErrClosed.
func (e *Engine) Resign() {
	if !e.closed.Load() {
		e.resigned.Store(true)
	}
}

// closedCause returns the error of calls to a closed engine.
func (e *Engine) closedCause() error {
	if e.resigned.Load() {
		return engine.ErrNotOwner
	}
	return engine.ErrClosed
}

// checkMessageSpace returns an error when there is no space for messages.
func (e *Engine) checkMessageSpace() error {
	if e.disk.full() {
		return engine.ErrDiskFull
	}
	if e.commit.log != nil {
		if full, _ := e.commit.log.Full(); full {
			return errLogFull
		}
	}
	return nil
}

// checkRecordSpace returns an error when there is no space for journal records.
func (e *Engine) checkRecordSpace() error {
	if e.disk.critical() {
		return engine.ErrDiskFull
	}
	if e.commit.log != nil {
		if _, full := e.commit.log.Full(); full {
			return errLogFull
		}
	}
	return nil
}

var errLogFull = fmt.Errorf("%w: replicated log of the shard is at its size limit, because a member of the ensemble "+
	"lags behind", engine.ErrDiskFull)

// appendToLog appends a batch to the log.
func (c *committer) appendToLog(g *commitBatch) {
	g.emit()
	if !g.batch.Empty() {
		g.offeredAt = time.Now()
		g.logAppend = c.log.Append(g.batch.Repr())
	}
}

// applyLogged waits until the log has acknowledged the batch, and applies it to the store.
// It returns false when the engine has stopped.
func (c *committer) applyLogged(g *commitBatch) bool {
	var position []byte
	if g.logAppend != nil {
		var err error
		if position, err = g.logAppend.Wait(); err != nil {
			c.e.loseLog(err)
			return false
		}
	}
	c.mu.Lock()
	stopped := c.err != nil
	c.mu.Unlock()
	if stopped || g.logAppend == nil {
		return !stopped
	}
	c.applying.Lock()
	defer c.applying.Unlock()
	if err := c.e.store.apply(g.batch, position); err != nil {
		c.e.store.fail(err)
		return false
	}
	return true
}

// loseLog stops the engine because another writer may append to its log.
func (e *Engine) loseLog(err error) {
	if e.stopCause() == nil {
		e.log.Warn("engine stopped because another member of the ensemble may own its shard; callers retry",
			slog.String("dir", e.dir), slog.Any("error", err))
	}
	e.stop(engine.ErrNotOwner)
}

// checkpointFlushed writes a copy of a store with an external log. Flushed data is always
// the state after some batch, so writes need not be paused.
func (s *store) checkpointFlushed(dir string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("writing a checkpoint to %s: %v", dir, r)
		}
	}()
	if err := s.failure(); err != nil {
		return err
	}
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("flushing before the checkpoint to %s: %w", dir, storeError(err))
	}
	if err := s.db.Checkpoint(dir); err != nil {
		return fmt.Errorf("writing a checkpoint to %s: %w", dir, s.spoilMissing(storeError(err)))
	}
	return nil
}

// diskUsage returns the disk usage of the store.
func (s *store) diskUsage() engine.Disk {
	d := engine.Disk{Used: int64(s.db.Metrics().DiskSpaceUsage()), Available: -1}
	if usage, err := s.fs.GetDiskUsage(s.dir); err == nil {
		d.Available = int64(usage.AvailBytes)
	}
	return d
}
