package schemas

import (
	"context"
	"errors"

	"freshet/internal/base/workpool"
	"freshet/internal/registry/protobuf"
)

// job is the costly work of one call, or of one batch of an import.
type job struct {
	*workpool.Job

	// parsed has the schemas that an import parsed before it took the write
	// lock, because the cache may have evicted them. It is nil for other calls.
	parsed map[parseID]parsedSchema
	locked bool
}

func (r *Registry) newJob(ctx context.Context) *job {
	return &job{Job: r.pool.Job(ctx).WithTimeLimit(r.checkTime)}
}

// inLock returns the effort for use in the write lock, for which all other
// writers wait: it may do only small work, and ends with errStale otherwise.
func (e *job) inLock() *job { return &job{Job: e.Locked(), parsed: e.parsed, locked: true} }

// do runs a part of the work, on schemas of this number of bytes.
func (e *job) do(bytes int, part func() error) error { return e.at(workpool.LaneOf(bytes), part) }

func (e *job) at(lane workpool.Lane, part func() error) error {
	err := e.Do(lane, part)
	if errors.Is(err, workpool.ErrLocked) {
		return errStale
	}
	return err
}

// parseLane returns the lane for parsing a text whose references include this
// number of schemas and bytes.
func parseLane(t Type, text string, dependencies, bytes int) workpool.Lane {
	const perSchema = 256 // cost of a schema in addition to its text
	if t == Protobuf && len(text) > protobuf.LargeText {
		return workpool.Huge
	}
	return workpool.LaneOf(len(text) + max(0, bytes) + perSchema*dependencies)
}

// isTransient reports whether an error is not about a schema: the call has ended, has
// to be repeated without the lock, or found too many waiting calls.
func isTransient(err error) bool {
	return errors.Is(err, errStale) || errors.Is(err, workpool.ErrLocked) || errors.Is(err, workpool.ErrBusy) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
