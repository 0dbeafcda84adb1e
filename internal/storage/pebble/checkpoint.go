package pebble

import (
	"context"
	"fmt"

	cdb "github.com/cockroachdb/pebble/v2"
)

// checkpointFlushBytes is the size of the log from which on it is flushed to a table before a
// checkpoint, so that less has to be copied while writes are paused.
const checkpointFlushBytes = 1 << 20

// Checkpoint implements engine.Engine. Topics, subscriptions and journals are in one store,
// so the copy is consistent. Tables are hard-linked if the file system supports that.
//
// Writes are paused while the tables are linked and the short log is copied. Without the
// pause, the log would be copied while it grows, which may never end. In a reused log file,
// a block that was read before it was full, followed by later blocks, would look like damage
// when the copy is opened.
func (e *Engine) Checkpoint(ctx context.Context, dir string) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	if e.logged {
		return e.store.checkpointFlushed(dir)
	}
	if e.db.Metrics().WAL.Size > checkpointFlushBytes {
		if err := e.db.Flush(); err != nil {
			return fmt.Errorf("flushing before the checkpoint to %s: %w", dir, storeError(err))
		}
	}
	if err := e.commit.whilePaused(func() error { return e.db.Checkpoint(dir, cdb.WithFlushedWAL()) }); err != nil {
		return fmt.Errorf("writing a checkpoint to %s: %w", dir, storeError(err))
	}
	return nil
}
