// Package workpool schedules work that needs more CPU time and memory than a usual request, such
// as parsing and comparing schemas and checking large payloads. It owns the order in which calls
// may work and the limits of one call. It does not know the work itself: registry/schemas and
// broker/messaging provide it.
//
// Work runs in lanes, each with its own concurrency permits, so that small work never waits for
// large work. Within a lane permits are shared fairly between the waiting organizations, and
// within an organization between its principals: a principal with many calls delays only its own
// calls. Work that exceeds the limit of small work moves to the lane of large work while it runs
// (Job.Spend).
//
// Package fairshare orders the waiting calls; this package has no lock of its own. The fields of a
// Job belong to the goroutine that runs its current part; only Job.ended is atomic.
package workpool

import (
	"context"
	"errors"
	"runtime"

	"freshet/internal/base/errs"
	"freshet/internal/base/fairshare"
)

// ErrBusy means that a principal has too many waiting calls, and ErrTooCostly that work exceeds a
// limit.
var (
	ErrBusy      = errs.New(errs.Unavailable, "too many concurrent costly checks")
	ErrTooCostly = errs.New(errs.Invalid, "check is too costly")
)

// Lane is a class of work by cost.
type Lane uint8

// The lanes.
const (
	Small    Lane = iota // ends within milliseconds
	Large                // may take up to the time limit of a call
	Huge                 // needs so much memory that only one runs at a time
	Payloads             // large messages that are validated against a schema
	Scans                // slices of the scans of topics, see Pool.Slice
	laneCount
)

// SmallBytes is the maximum size of the schemas of small work.
const SmallBytes = 64 << 10

// LaneOf returns the lane of work on schemas of a size.
func LaneOf(bytes int) Lane {
	if bytes <= SmallBytes {
		return Small
	}
	return Large
}

// Caller identifies for whom work is done. The zero value is the server itself.
type Caller = fairshare.Caller

// WithCaller returns a context with which work is done for s.
func WithCaller(ctx context.Context, s Caller) context.Context { return fairshare.WithCaller(ctx, s) }

// Pool has the permits of all lanes. It is safe for concurrent use.
type Pool struct {
	lanes [laneCount]*fairshare.Semaphore
}

// New returns a pool for this machine. A process needs only one.
func New() *Pool {
	cores := runtime.GOMAXPROCS(0)
	// A part of the work is short, so a caller may use all permits that nobody else waits for.
	lane := func(permits, maxWaiting int) *fairshare.Semaphore {
		return fairshare.New(int64(permits), fairshare.Options{MaxWaiting: maxWaiting, NoReserve: true})
	}
	return &Pool{lanes: [laneCount]*fairshare.Semaphore{
		Small:    lane(2*cores, 256),
		Large:    lane(max(1, cores/2), 32),
		Huge:     lane(1, 8),
		Payloads: lane(max(1, cores/2), 32),
		Scans:    lane(max(1, cores/2), 32), // half of the processors stay free for producers
	}}
}

// Slice runs a short part of a scan of a topic with a permit of the lane Scans, for the caller of the
// context. A scan that is divided into slices shares the permits fairly with the scans of others.
func (p *Pool) Slice(ctx context.Context, part func() error) error {
	caller := fairshare.CallerOf(ctx)
	if err := p.acquire(ctx, Scans, caller); err != nil {
		return err
	}
	defer p.release(Scans, caller)
	return part()
}

// acquire waits for a permit of a lane.
func (p *Pool) acquire(ctx context.Context, at Lane, s Caller) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := p.lanes[at].Acquire(ctx, s, 1, fairshare.NoTimeout)
	if errors.Is(err, fairshare.ErrQueueFull) {
		return errs.Newf(errs.Unavailable, "%w: %d of your checks are waiting already; send fewer concurrently, "+
			"or try again later", ErrBusy, p.lanes[at].MaxWaiting())
	}
	return err
}

// release releases a permit.
func (p *Pool) release(at Lane, s Caller) { p.lanes[at].Release(s, 1) }
