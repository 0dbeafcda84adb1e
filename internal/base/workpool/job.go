package workpool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"freshet/internal/base/errs"
)

// The limits of one call. A step is about what it takes to compare two types;
// steps make the limit the same on every machine, time is the last resort.
const (
	maxSteps   = 50_000_000
	maxTime    = 15 * time.Second // at work; waiting does not count
	smallSteps = 200_000          // in one go in the lane of small work
	lockSteps  = 200_000          // while others wait for a lock of the caller
)

// ErrLocked is the refusal of a locked job: the work has to be done without the
// lock.
var ErrLocked = errors.New("too costly while others wait")

// Job is the costly work of one call, of which one part is done at a time. A nil
// job has no limits and needs no places.
type Job struct {
	pool   *Pool
	ctx    context.Context //nolint:containedctx // one call's
	share  Share
	locked bool
	limit  time.Duration

	lane  Lane
	steps int           // so far
	slice int           // in this part
	ran   time.Duration // in the parts before
	since time.Time     // this part began, or went on after waiting

	ended atomic.Pointer[error] // its caller went away while a part was running
}

// Job begins the work of one call, for whom the context says.
func (p *Pool) Job(ctx context.Context) *Job {
	return &Job{pool: p, ctx: ctx, share: shareOf(ctx), limit: maxTime}
}

// Within sets how long the job may be at work; 0 leaves it as it is.
func (j *Job) Within(limit time.Duration) *Job {
	if limit > 0 {
		j.limit = limit
	}
	return j
}

// Locked is a job for work inside a lock: it waits for no place, does little,
// and fails with ErrLocked where that is not enough.
func (j *Job) Locked() *Job {
	return &Job{pool: j.pool, ctx: j.ctx, share: j.share, limit: j.limit, locked: true}
}

// Do does one part of the job at a place in a lane. The part has to call Spend
// now and then, as far as it can. Large parts that cannot are left behind when
// the call ends or takes too long: they keep their place until they are done,
// and nobody waits for them.
func (j *Job) Do(at Lane, part func() error) error {
	if err := j.ended.Load(); err != nil {
		return *err
	}
	if j.ran > j.limit {
		return j.tooLong()
	}
	if j.locked {
		if at != Small {
			return ErrLocked
		}
		j.since = time.Now()
		return part()
	}
	if err := j.pool.enter(j.ctx, at, j.share); err != nil {
		return err
	}
	j.lane, j.slice, j.since = at, 0, time.Now()
	if at == Small || at == Payloads { // of which bytes bound the cost
		defer j.leave()
		return part()
	}
	return j.leaveBehind(part)
}

// noLane is where a job is that lost its place and got no other.
const noLane = laneCount

func (j *Job) leave() {
	if j.lane == noLane {
		return
	}
	j.ran += time.Since(j.since)
	j.pool.leave(j.lane, j.share)
}

// leaveBehind does a part in a goroutine of its own.
func (j *Job) leaveBehind(part func() error) error {
	done := make(chan error, 1)
	left := time.NewTimer(j.limit - j.ran)
	defer left.Stop()
	go func() {
		var err error
		defer func() {
			if fault := recover(); fault != nil {
				err = fmt.Errorf("costly work failed: %v\n%s", fault, debug.Stack())
			}
			j.leave()
			done <- err
		}()
		err = part()
	}()
	var err error
	select {
	case err = <-done:
		return err
	case <-left.C:
		err = j.tooLong()
	case <-j.ctx.Done():
		err = j.ctx.Err()
	}
	j.ended.Store(&err)
	return err
}

func (j *Job) tooLong() error {
	return errs.Newf(errs.Invalid, "%w: it takes more than %s; make the schemas smaller or simpler",
		ErrTooCostly, j.limit)
}

// Spend counts work that was done. It fails when the job is over a limit, or its
// call has ended; then the part has to end, too.
func (j *Job) Spend(steps int) error {
	if j == nil {
		return nil
	}
	j.steps += steps
	j.slice += steps
	switch ended := j.ended.Load(); {
	case ended != nil:
		return *ended
	case j.ctx.Err() != nil:
		return j.ctx.Err()
	case j.locked && j.slice > lockSteps:
		return ErrLocked
	case j.steps > maxSteps:
		return errs.Newf(errs.Invalid, "%w: it takes more than %d steps; make the schemas smaller or simpler",
			ErrTooCostly, maxSteps)
	case j.ran+time.Since(j.since) > j.limit:
		return j.tooLong()
	case !j.locked && j.lane == Small && j.slice > smallSteps:
		return j.enlarge()
	}
	return nil
}

// enlarge moves work that is not small after all out of the way of what is.
func (j *Job) enlarge() error {
	j.leave()
	if err := j.pool.enter(j.ctx, Large, j.share); err != nil {
		j.lane = noLane
		return err
	}
	j.lane, j.since = Large, time.Now()
	return nil
}
