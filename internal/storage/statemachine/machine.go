package statemachine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// State is one version of a state machine. A published state is never changed: Clone returns a
// cheap copy-on-write copy, and Apply changes only the clone on which it is called.
type State[S any] interface {
	// Clone returns a copy that may be changed without changing the original. Only the
	// machine calls it, never concurrently.
	Clone() S
	// Apply applies one record. It must be deterministic: every replica applies the same
	// records in the same order and must reach the same state. It returns
	// engine.ErrNewerFormat for a record of an unknown later version.
	Apply(position uint64, record []byte) error
	// Snapshot writes the whole state in a form that Restore reads.
	Snapshot(w io.Writer) error
	// Restore reads a state that Snapshot wrote into a clone of Options.Empty.
	Restore(r io.Reader) error
}

// Options configures a machine. Empty is required.
type Options[S any] struct {
	// Empty is the state before the first record.
	Empty S
	// SnapshotBytes is the size of the records after which a snapshot is saved. If the last
	// snapshot was larger, its size is used instead, so that snapshots never cost more than
	// the records. 0 means 16 MiB; a negative value disables snapshots.
	SnapshotBytes int64
	// AppendTimeout is the timeout of one append to the journal; 0 means 10 s.
	AppendTimeout time.Duration
	// Name is the machine's name in logs and errors, for example "registry".
	Name string
	// Logger receives errors of the background work; nil means slog.Default().
	Logger *slog.Logger
}

const (
	defaultSnapshotBytes = 16 << 20
	defaultAppendTimeout = 10 * time.Second
	startSnapshotDelay   = time.Minute // delay of the snapshot of the records that Open replayed
)

// The errors of a machine, in addition to those of the journal.
var (
	// ErrClosed is returned by calls after Close.
	ErrClosed = errs.New(errs.Unavailable, "state machine is closed")
	// ErrBroken means that a record could not be applied. The machine keeps the last published
	// state and rejects writes.
	ErrBroken = errs.New(errs.Unavailable,
		"state machine cannot apply a record of its journal and rejects writes; see the server log")
	// ErrContended means that the appends of an update conflicted with other writers until the
	// timeout.
	ErrContended = errs.New(errs.Unavailable, "too many concurrent writers; try again shortly")
)

// Machine is a replica of a state machine.
type Machine[S State[S]] struct {
	journal engine.Journal
	opts    Options[S]
	log     *slog.Logger

	current atomic.Pointer[published[S]]
	broken  atomic.Pointer[error]

	// writing is the lock for replacing current; a channel, so that a waiting caller can
	// stop when its context ends.
	writing chan struct{}
	updates chan *update[S]
	barrier barriers

	snapshotSize  atomic.Int64  // size of the last snapshot
	appliedBytes  atomic.Int64  // bytes applied since the last snapshot
	snapshotDue   chan struct{} // capacity 1
	replayedTimer *time.Timer   // counts the bytes that Open replayed

	ctx    context.Context // context of the background work, cancelled by Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// published is a state and the position of the last record in it.
type published[S any] struct {
	position uint64
	state    S
}

// Open restores the latest snapshot, replays the records after it and starts to follow the
// journal. When a record cannot be applied, Open returns an error with its position, because a
// replica must not serve an incomplete state.
func Open[S State[S]](ctx context.Context, journal engine.Journal, opts Options[S]) (*Machine[S], error) {
	if opts.SnapshotBytes == 0 {
		opts.SnapshotBytes = defaultSnapshotBytes
	}
	if opts.AppendTimeout == 0 {
		opts.AppendTimeout = defaultAppendTimeout
	}
	log := opts.Logger
	if log == nil {
		log = slog.Default()
	}
	m := &Machine[S]{
		journal:     journal,
		opts:        opts,
		log:         log.With(slog.String("machine", opts.Name)),
		writing:     make(chan struct{}, 1),
		updates:     make(chan *update[S], 256),
		snapshotDue: make(chan struct{}, 1),
	}
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := m.reloadLocked(ctx); err != nil {
		m.cancel()
		return nil, fmt.Errorf("opening %s: %w", opts.Name, err)
	}
	m.wg.Go(m.commitLoop)
	m.wg.Go(m.tailLoop)
	if opts.SnapshotBytes > 0 {
		m.wg.Go(m.snapshotLoop)
		// Save a snapshot of the replayed records, so that the next start need not replay
		// them, but not while the server is busy starting.
		replayed := m.appliedBytes.Swap(0)
		m.replayedTimer = time.AfterFunc(startSnapshotDelay, func() { m.countApplied(replayed) })
	}
	return m, nil
}

// View returns the current state of this replica. It never blocks and never fails. Another
// replica may be ahead; see Fresh.
func (m *Machine[S]) View() S { return m.current.Load().state }

// Position returns the position of the last record in View.
func (m *Machine[S]) Position() uint64 { return m.current.Load().position }

// Health returns nil, or why this replica rejects writes.
func (m *Machine[S]) Health() error {
	if err := m.broken.Load(); err != nil {
		return *err
	}
	if m.ctx.Err() != nil {
		return ErrClosed
	}
	return nil
}

// Close stops the background work. It does not close the journal, which belongs to the caller.
func (m *Machine[S]) Close() error {
	m.cancel()
	if m.replayedTimer != nil {
		m.replayedTimer.Stop()
	}
	m.wg.Wait()
	return nil
}

// lockWriting locks writing. When it returns nil, the caller must call unlockWriting.
func (m *Machine[S]) lockWriting(ctx context.Context) error {
	select {
	case m.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-m.ctx.Done():
		return ErrClosed
	}
}

func (m *Machine[S]) unlockWriting() { <-m.writing }

// reloadLocked rebuilds the state from the latest snapshot and the records after it. The caller
// has locked writing, or is Open.
func (m *Machine[S]) reloadLocked(ctx context.Context) error {
	position, r, err := m.journal.LoadSnapshot(ctx)
	if err != nil {
		return fmt.Errorf("loading the snapshot: %w", err)
	}
	state := m.opts.Empty.Clone()
	if r != nil {
		counted := &countingReader{r: r}
		if err := errors.Join(state.Restore(counted), r.Close()); err != nil {
			return fmt.Errorf("restoring the snapshot at position %d: %w", position, err)
		}
		m.snapshotSize.Store(counted.n)
	}
	m.appliedBytes.Store(0)
	m.current.Store(&published[S]{position: position, state: state})
	return m.replayLocked(ctx)
}

// replayLocked applies the records after the current state and publishes the result. The caller
// has locked writing, or is Open.
func (m *Machine[S]) replayLocked(ctx context.Context) error {
	base := m.current.Load()
	next := published[S]{position: base.position}
	var size int64
	_, err := m.journal.Replay(ctx, base.position, func(position uint64, record []byte) error {
		if next.position == base.position {
			next.state = base.state.Clone()
		}
		if err := apply(next.state, position, record); err != nil {
			return &applyError{position: position, cause: err}
		}
		next.position = position
		size += int64(len(record))
		return nil
	})
	// Records that were applied before a read error are complete, so their state is published.
	// A clone that failed within a record is not.
	var bad *applyError
	if errors.As(err, &bad) {
		m.fail(bad)
		return err
	}
	if next.position > base.position {
		m.current.Store(&next)
		m.countApplied(size)
	}
	if err != nil {
		return fmt.Errorf("replaying after position %d: %w", base.position, err)
	}
	return nil
}

// applyError is the error of a record that could not be applied.
type applyError struct {
	position uint64
	cause    error
}

func (e *applyError) Error() string {
	return fmt.Sprintf("record at position %d cannot be applied: %v", e.position, e.cause)
}

func (e *applyError) Unwrap() error { return e.cause }

// fail stops all further writes of this replica.
func (m *Machine[S]) fail(cause error) {
	err := error(errs.Newf(errs.Unavailable, "%w: %w", ErrBroken, cause))
	if m.broken.CompareAndSwap(nil, &err) {
		m.log.LogAttrs(m.ctx, slog.LevelError,
			"state machine cannot apply a record of its journal; further writes are rejected",
			slog.Any("error", cause))
	}
}

// apply calls Apply and converts a panic into an error, so that a bad record does not end the
// process.
func apply[S State[S]](state S, position uint64, record []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return state.Apply(position, record)
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
