package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"freshet/internal/base/framing"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/journalcopy"
)

// Seed copies a journal from another store into the new journal of the same name: its
// snapshot and the records after it, at their original positions. No other writer may use
// the new journal until Seed returns nil. Calling Seed again continues an interrupted copy.
func (s *Journals) Seed(ctx context.Context, name string, from engine.Journal) (err error) {
	opened, err := s.Journal(ctx, name)
	if err != nil {
		return err
	}
	j, _ := s.lookup(name).healthy()
	last, err := opened.Last(ctx)
	if err != nil {
		return err
	}
	position, state, err := from.LoadSnapshot(ctx)
	if err != nil {
		return fmt.Errorf("reading the snapshot of journal %q: %w", name, err)
	}
	if state != nil {
		defer func() { err = errors.Join(err, state.Close()) }()
	}
	if tail, _ := j.knownTail(); tail.seq == 0 && position > 0 {
		if err := j.seedSnapshot(ctx, position, state); err != nil {
			return j.wrapError(ctx, "copying the snapshot of", err)
		}
	}
	if err := journalcopy.Records(ctx, from, opened, max(position, last)); err != nil {
		return err
	}
	want, err := journalcopy.Sum(ctx, from)
	if err != nil {
		return err
	}
	got, err := journalcopy.Sum(ctx, opened)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: journal %q differs from its source after copying", engine.ErrCorrupt, name)
	}
	return nil
}

// seedSnapshot writes a snapshot as the first message of the journal.
func (j *journal) seedSnapshot(ctx context.Context, position uint64, state io.Reader) error {
	w := newSnapshotWriter(ctx, j, snapshotPointer{ID: snapshotID(position), Position: position})
	chunks := framing.NewChunkWriter(snapshotChunk, w.store)
	if _, err := io.Copy(chunks, state); err != nil {
		return err
	}
	if err := chunks.Flush(); err != nil {
		return err
	}
	return j.installFirst(ctx, w.finish())
}
