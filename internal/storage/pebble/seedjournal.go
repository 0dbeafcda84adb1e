package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/journalcopy"
)

// SeedJournal makes a new journal out of one that was kept elsewhere: its snapshot, and
// the records behind that, at the positions that they have. Nobody else may have the
// journal open.
func (e *Engine) SeedJournal(ctx context.Context, name string, from engine.Journal) (err error) {
	opened, err := e.Journal(ctx, name)
	if err != nil {
		return err
	}
	j := opened.(*journal) //nolint:forcetypeassert // Journal makes no others
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
		j.assigned, j.durable = position, position // as if the records had been there
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
