package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/journalcopy"
)

// SeedJournal creates a journal as a copy of one in another engine: its snapshot and the
// records after it, at the same positions. No other caller may have the new journal open.
func (e *Engine) SeedJournal(ctx context.Context, name string, from engine.Journal) (err error) {
	opened, err := e.Journal(ctx, name)
	if err != nil {
		return err
	}
	j := opened.(*journal) //nolint:forcetypeassert // Journal returns no other type
	last, err := j.Last(ctx)
	if err != nil {
		return err
	}
	if last > 0 {
		return fmt.Errorf("%w: journal %q has records already", engine.ErrConflict, name)
	}
	position, state, err := from.LoadSnapshot(ctx)
	if err != nil {
		return err
	}
	if state != nil {
		defer func() { err = errors.Join(err, state.Close()) }()
		e.commit.mu.Lock()
		j.assigned, j.durable = position, position // as if the records had been appended
		e.commit.mu.Unlock()
		err := j.SaveSnapshot(ctx, position, func(w io.Writer) error {
			_, err := io.Copy(w, state)
			return err
		})
		if err != nil {
			return err
		}
	}
	return journalcopy.Records(ctx, from, opened, position)
}
