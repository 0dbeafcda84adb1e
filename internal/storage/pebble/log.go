package pebble

import (
	"errors"
	"fmt"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"

	"freshet/internal/storage/engine"
)

// Log is a write-ahead log outside of the store, which others follow. With it a
// group's batch goes to the log first, and to the store only when the log has it
// for good: a store is never ahead of its log.
type Log interface {
	// Append puts a batch behind all that were appended before and returns at
	// once. The batch is the log's until Wait of its place has returned. One
	// goroutine calls it.
	Append(batch []byte) Place
	// Live says whether what is read from the store is still the truth: no other
	// writer can have taken over. It is asked often.
	Live() bool
	// Full says that the log takes no messages, and that it takes no journal
	// records either. It is asked often.
	Full() (messages, records bool)
}

// Place is where a batch goes in a log.
type Place interface {
	// Wait returns once the log has the batch for good, with what the store is to
	// keep beside it. An error means that this writer may append no more: whether
	// the log has the batch is open, and it has none of those behind.
	Wait() (mark []byte, err error)
}

// Store is an open store whose log is elsewhere. It follows that log (Apply), and
// an engine can be opened and closed on it without closing it.
type Store struct{ s *store }

// OpenStore opens the store in dir, creating it when it is new. What it had not
// flushed before a crash is gone; Mark says from where on the log has to be applied
// again.
func OpenStore(dir string, opts Options) (*Store, error) {
	s, err := openStore(dir, opts, true)
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// Mark returns what was given with the last batch that was applied, nil when there
// was none.
func (st *Store) Mark() ([]byte, error) {
	mark, err := st.s.get([]byte{keyMark})
	if errors.Is(err, cdb.ErrNotFound) {
		return nil, nil
	}
	return mark, err
}

// Apply applies a batch of the log and keeps mark beside it; an empty batch changes
// the mark only. The batch is the store's. Nobody may call it while an engine is
// open.
func (st *Store) Apply(batch, mark []byte) (err error) {
	s := st.s
	if err := s.failure(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	if len(batch) > 0 {
		if err := b.SetRepr(batch); err != nil {
			return fmt.Errorf("%w: batch of the log cannot be read: %w", engine.ErrCorrupt, err)
		}
	}
	if err := s.apply(b, mark); err != nil {
		return err
	}
	return b.Close()
}

// apply writes a batch and the mark as one. Pebble panics when the manifest cannot
// be written.
func (s *store) apply(b *cdb.Batch, mark []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("apply a group of writes: %v", r)
		}
	}()
	key := []byte{keyMark}
	if err := b.Set(key, addChecksum(key, mark), nil); err != nil {
		return fmt.Errorf("apply a group of writes: %w", err)
	}
	if err := s.db.Apply(b, cdb.NoSync); err != nil {
		return fmt.Errorf("apply a group of writes: %w", err)
	}
	return s.failure()
}

// Open opens an engine on the store that writes to the log. Its Close leaves the
// store open. When an append to the log fails, the engine is no owner any more:
// every caller gets engine.ErrNotOwner, and after Close the store has nothing that
// the log does not have.
func (st *Store) Open(log Log) (*Engine, error) {
	if err := st.s.failure(); err != nil {
		return nil, err
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

// Flush makes durable what was applied before the call.
func (st *Store) Flush() error {
	if err := st.s.failure(); err != nil {
		return err
	}
	if err := st.s.db.Flush(); err != nil {
		return fmt.Errorf("flush %s: %w", st.s.dir, storeError(err))
	}
	return st.s.failure()
}

// Checkpoint writes a copy of what was applied before the call, and of what is
// applied during it the part up to one moment, to a directory that does not exist
// yet.
func (st *Store) Checkpoint(dir string) error { return st.s.checkpointFlushed(dir) }

// Failed is closed when the store has failed.
func (st *Store) Failed() <-chan struct{} { return st.s.failed }

// Close flushes and closes the store, on which no engine is open.
func (st *Store) Close() error {
	if err := st.s.close(); err != nil {
		return fmt.Errorf("close %s: %w", st.s.dir, err)
	}
	return nil
}

// live returns ErrNotOwner when another writer may have taken the log over.
func (e *Engine) live() error {
	if e.commit.log != nil && !e.commit.log.Live() {
		return engine.ErrNotOwner
	}
	return nil
}

// Resign is called before Close when another member will take the log over: callers
// hear ErrNotOwner from then on, and not that the engine is closed.
func (e *Engine) Resign() {
	if !e.closed.Load() {
		e.resigns.Store(true)
	}
}

// closedCause is what callers of a closed engine are told.
func (e *Engine) closedCause() error {
	if e.resigns.Load() {
		return engine.ErrNotOwner
	}
	return engine.ErrClosed
}

// takesMessages returns nil when there is room for messages.
func (e *Engine) takesMessages() error {
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

// takesRecords returns nil when there is room for journal records.
func (e *Engine) takesRecords() error {
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

var errLogFull = fmt.Errorf("%w: the shard's log is at its bound, because a member of the group is behind",
	engine.ErrDiskFull)

// offer hands a group to the log.
func (c *committer) offer(g *group) {
	g.emit()
	if !g.batch.Empty() {
		g.offered = time.Now()
		g.place = c.log.Append(g.batch.Repr())
	}
}

// applyLogged waits until the log has the group, and applies it. It returns false
// when the engine has stopped.
func (c *committer) applyLogged(g *group) bool {
	var mark []byte
	if g.place != nil {
		var err error
		if mark, err = g.place.Wait(); err != nil {
			c.e.lose(err)
			return false
		}
	}
	c.mu.Lock()
	stopped := c.err != nil
	c.mu.Unlock()
	if stopped || g.place == nil {
		return !stopped
	}
	c.applying.Lock()
	defer c.applying.Unlock()
	if err := c.e.store.apply(g.batch, mark); err != nil {
		c.e.store.fail(err)
		return false
	}
	return true
}

// lose stops the engine because somebody else may append to its log.
func (e *Engine) lose(err error) {
	if e.stopCause() == nil {
		e.log.Warn("engine stopped because another member of the group may own its shard; callers try again", "dir",
			e.dir, "error", err)
	}
	e.stop(engine.ErrNotOwner)
}

// checkpointFlushed writes a copy of a store whose log is elsewhere. What is
// flushed is always the state after some batch, so writes need not wait.
func (s *store) checkpointFlushed(dir string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("checkpoint to %s: %v", dir, r)
		}
	}()
	if err := s.failure(); err != nil {
		return err
	}
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("flush before the checkpoint to %s: %w", dir, storeError(err))
	}
	if err := s.db.Checkpoint(dir); err != nil {
		return fmt.Errorf("checkpoint to %s: %w", dir, storeError(err))
	}
	return nil
}

// room tells of the store's files.
func (s *store) room() engine.Disk {
	d := engine.Disk{Used: int64(s.db.Metrics().DiskSpaceUsage()), Available: -1}
	if usage, err := s.fs.GetDiskUsage(s.dir); err == nil {
		d.Available = int64(usage.AvailBytes)
	}
	return d
}
