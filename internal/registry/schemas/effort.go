package schemas

import (
	"context"
	"errors"

	"freshet/internal/base/workpool"
	"freshet/internal/registry/protobuf"
)

// effort is the costly work of one call, or of one batch of an import.
type effort struct {
	*workpool.Job

	// parsed is what an import has parsed, so that it is there in the lock,
	// whatever the cache holds; nil for other calls.
	parsed map[parseID]form
	locked bool
}

func (r *Registry) effort(ctx context.Context) *effort {
	return &effort{Job: r.pool.Job(ctx).Within(r.checkTime)}
}

// inLock is the same effort where everybody who writes waits for it: it may do
// little more than use what was parsed before, or end with errStale.
func (e *effort) inLock() *effort {
	return &effort{Job: e.Locked(), parsed: e.parsed, locked: true}
}

// do does a part of the work that looks at so many bytes of schemas.
func (e *effort) do(bytes int, part func() error) error {
	return e.at(workpool.LaneOf(bytes), part)
}

func (e *effort) at(lane workpool.Lane, part func() error) error {
	err := e.Do(lane, part)
	if errors.Is(err, workpool.ErrLocked) {
		return errStale
	}
	return err
}

// parseLane is the lane for parsing a text whose references draw in so many
// schemas and bytes.
func parseLane(t Type, text string, drawnIn, bytes int) workpool.Lane {
	const perSchema = 256 // what a schema costs beside its text
	if t == Protobuf && len(text) > protobuf.LargeText {
		return workpool.Huge
	}
	return workpool.LaneOf(len(text) + max(0, bytes) + perSchema*drawnIn)
}

// passes says that an error is not about a schema: the call has ended, has to
// be made again without the lock, or comes at a bad time.
func passes(err error) bool {
	return errors.Is(err, errStale) || errors.Is(err, workpool.ErrLocked) || errors.Is(err, workpool.ErrBusy) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
