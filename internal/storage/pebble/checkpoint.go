package pebble

import (
	"context"
	"fmt"

	cdb "github.com/cockroachdb/pebble/v2"
)

// flushWorthwhile is how much of the log is rather written into a table before a
// checkpoint than copied during it, while writes wait.
const flushWorthwhile = 1 << 20

// Checkpoint implements engine.Engine: topics, subscriptions and journals are all
// in one store, so its copy is of one moment. Tables are linked where the file
// system can do that.
//
// Writes wait while the copy is made, which takes as long as linking the tables
// and copying a short log. Without that, the log would be copied while it grows,
// with no end as long as writers are quicker; and in a log file that is used again,
// a block that was read before it was full, followed by blocks that came later,
// looks like damage to whoever opens the copy.
func (e *Engine) Checkpoint(ctx context.Context, dir string) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	defer e.leave()
	if e.logged {
		return e.store.checkpointFlushed(dir)
	}
	if e.db.Metrics().WAL.Size > flushWorthwhile {
		if err := e.db.Flush(); err != nil {
			return fmt.Errorf("flush before the checkpoint to %s: %w", dir, storeError(err))
		}
	}
	if err := e.commit.whilePaused(func() error { return e.db.Checkpoint(dir, cdb.WithFlushedWAL()) }); err != nil {
		return fmt.Errorf("checkpoint to %s: %w", dir, storeError(err))
	}
	return nil
}
