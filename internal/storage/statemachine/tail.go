package statemachine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
)

const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 5 * time.Second
	// tailPause is how long a replica that has just written does not wait for records of
	// others. While it continues to write, it detects them anyway: its append conflicts.
	tailPause = 10 * time.Millisecond
)

// tailLoop applies the records that other replicas append.
func (m *Machine[S]) tailLoop() {
	backoff := retry.Backoff{Min: minBackoff, Max: maxBackoff}
	for m.ctx.Err() == nil && m.broken.Load() == nil {
		err := m.follow()
		if err == nil {
			backoff.Reset()
			continue
		}
		if m.ctx.Err() != nil || errors.Is(err, engine.ErrClosed) {
			return
		}
		m.log.LogAttrs(m.ctx, slog.LevelWarn, "records of other replicas could not be read; retrying with backoff",
			slog.Any("error", err))
		_ = backoff.Sleep(m.ctx)
	}
}

func (m *Machine[S]) follow() error {
	position := m.Position()
	if err := m.journal.Wait(m.ctx, position); err != nil {
		return err
	}
	if own, err := m.catchUpAfter(position); err != nil || !own {
		return err
	}
	// Waking the tail for each of many appends would cost a writer a fifth of its
	// wake-ups.
	_ = retry.Sleep(m.ctx, tailPause) // tailLoop checks the context
	return nil
}

// catchUpAfter applies the records that others appended after a position. It returns true when
// the journal grew by an append of this replica, which publishes its state itself.
func (m *Machine[S]) catchUpAfter(position uint64) (own bool, err error) {
	if m.Position() > position {
		return true, nil
	}
	if err := m.lockWriting(m.ctx); err != nil {
		return false, err
	}
	defer m.unlockWriting()
	if m.Position() > position {
		return true, nil
	}
	return false, m.catchUpLocked(m.ctx)
}

// catchUpLocked applies the missing records. When they were compacted into a newer snapshot, it
// reloads from that snapshot. The caller has locked writing.
func (m *Machine[S]) catchUpLocked(ctx context.Context) error {
	err := m.replayLocked(ctx)
	if !errors.Is(err, engine.ErrCompacted) {
		return err
	}
	return m.reloadLocked(ctx)
}

// countApplied counts applied bytes and requests a snapshot when it is due.
func (m *Machine[S]) countApplied(size int64) {
	if m.opts.SnapshotBytes <= 0 {
		return
	}
	if m.appliedBytes.Add(size) >= m.opts.SnapshotBytes {
		select {
		case m.snapshotDue <- struct{}{}:
		default:
		}
	}
}

// snapshotLoop saves snapshots in the background, so that the next start does not replay a long
// journal.
func (m *Machine[S]) snapshotLoop() {
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.snapshotDue:
		}
		if m.appliedBytes.Load() < m.snapshotSize.Load() {
			continue
		}
		if err := m.saveSnapshot(m.ctx); err != nil && m.ctx.Err() == nil {
			m.log.LogAttrs(m.ctx, slog.LevelWarn,
				"snapshot could not be saved; retrying when the journal has grown",
				slog.Any("error", err))
		}
	}
}

func (m *Machine[S]) saveSnapshot(ctx context.Context) error {
	appliedBytes := m.appliedBytes.Load()
	at := m.current.Load()
	saved, r, err := m.journal.LoadSnapshot(ctx)
	if err != nil {
		return err
	}
	if r != nil {
		if err := r.Close(); err != nil {
			return err
		}
	}
	if saved >= at.position {
		m.appliedBytes.Add(-appliedBytes) // another replica has saved a snapshot
		return nil
	}
	counted := &countingWriter{}
	err = m.journal.SaveSnapshot(ctx, at.position, func(w io.Writer) error {
		counted.w = w
		return at.state.Snapshot(counted)
	})
	if err != nil {
		return fmt.Errorf("saving a snapshot at position %d: %w", at.position, err)
	}
	m.snapshotSize.Store(counted.n)
	m.appliedBytes.Add(-appliedBytes)
	return nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
