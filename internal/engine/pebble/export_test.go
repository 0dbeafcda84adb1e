package pebble

import (
	"context"
	"fmt"

	cdb "github.com/cockroachdb/pebble/v2"
)

// Checkpoint writes a consistent copy of the store to dir, which must not
// exist. Files are linked where the file system can, so it is quick and takes
// little space.
func (e *Engine) Checkpoint(ctx context.Context, dir string) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	if err := e.db.Checkpoint(dir, cdb.WithFlushedWAL()); err != nil {
		return fmt.Errorf("checkpoint to %s: %w", dir, storeError(err))
	}
	return nil
}
