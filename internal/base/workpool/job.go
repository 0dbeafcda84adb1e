package workpool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/fairshare"
)

// The limits of one call. A step is roughly the comparison of two types. Steps make the limit the
// same on every machine; the time limit is the last resort.
const (
	maxSteps   = 50_000_000
	maxTime    = 15 * time.Second // time of work; waiting does not count
	smallSteps = 200_000          // of one part in the lane of small work
	lockSteps  = 200_000          // of one part while the caller holds a lock
)

// ErrLocked means that a locked job is too costly: the work has to be done without the lock.
var ErrLocked = errors.New("work is too costly while a lock is held")

// Job is the costly work of one call. Its parts run one at a time. A nil job has no limits and
// needs no permits.
type Job struct {
	pool   *Pool
	ctx    context.Context //nolint:containedctx // one call's
	caller Caller
	locked bool
	limit  time.Duration

	lane      Lane
	steps     int           // steps of the job
	partSteps int           // steps of the current part
	worked    time.Duration // time of work in earlier parts
	since     time.Time     // when the current part began, or continued after waiting

	ended atomic.Pointer[error] // set when the call ended while a part was running
}

// Job begins the work of one call, for the organization and principal of the context
// (WithCaller).
func (p *Pool) Job(ctx context.Context) *Job {
	return &Job{pool: p, ctx: ctx, caller: fairshare.CallerOf(ctx), limit: maxTime}
}

// WithTimeLimit sets the time limit of the job; 0 does not change it.
func (j *Job) WithTimeLimit(limit time.Duration) *Job {
	if limit > 0 {
		j.limit = limit
	}
	return j
}

// Locked returns a job for work while the caller holds a lock: it does not wait for a permit, has
// a low limit, and fails with ErrLocked above it.
func (j *Job) Locked() *Job {
	return &Job{pool: j.pool, ctx: j.ctx, caller: j.caller, limit: j.limit, locked: true}
}

// Do runs one part of the job with a permit of a lane. The part should call Spend regularly. A
// large part that does not is abandoned when the call ends or exceeds its time limit: Do returns,
// and the part keeps its permit until it ends.
func (j *Job) Do(at Lane, part func() error) error {
	if err := j.ended.Load(); err != nil {
		return *err
	}
	if j.worked > j.limit {
		return j.timeLimitError()
	}
	if j.locked {
		if at != Small {
			return ErrLocked
		}
		j.since = time.Now()
		return part()
	}
	if err := j.pool.acquire(j.ctx, at, j.caller); err != nil {
		return err
	}
	j.lane, j.partSteps, j.since = at, 0, time.Now()
	if at == Small || at == Payloads { // the number of bytes limits their cost
		defer j.release()
		return part()
	}
	return j.runDetached(part)
}

// noLane is the lane of a job that has released its permit and got no other.
const noLane = laneCount

func (j *Job) release() {
	if j.lane == noLane {
		return
	}
	j.worked += time.Since(j.since)
	j.pool.release(j.lane, j.caller)
}

// runDetached runs a part in its own goroutine, so that the call can return before the part ends.
func (j *Job) runDetached(part func() error) error {
	done := make(chan error, 1)
	left := time.NewTimer(j.limit - j.worked)
	defer left.Stop()
	go func() {
		var err error
		defer func() {
			if fault := recover(); fault != nil {
				err = fmt.Errorf("costly work failed: %v\n%s", fault, debug.Stack())
			}
			j.release()
			done <- err
		}()
		err = part()
	}()
	var err error
	select {
	case err = <-done:
		return err
	case <-left.C:
		err = j.timeLimitError()
	case <-j.ctx.Done():
		err = j.ctx.Err()
	}
	j.ended.Store(&err)
	return err
}

func (j *Job) timeLimitError() error {
	return errs.Newf(errs.Invalid, "%w: it takes more than %s; make the schemas smaller or simpler",
		ErrTooCostly, j.limit)
}

// Spend counts steps of work. It returns an error when the job exceeds a limit or its call has
// ended; the part must then return.
func (j *Job) Spend(steps int) error {
	if j == nil {
		return nil
	}
	j.steps += steps
	j.partSteps += steps
	switch ended := j.ended.Load(); {
	case ended != nil:
		return *ended
	case j.ctx.Err() != nil:
		return j.ctx.Err()
	case j.locked && j.partSteps > lockSteps:
		return ErrLocked
	case j.steps > maxSteps:
		return errs.Newf(errs.Invalid, "%w: it takes more than %d steps; make the schemas smaller or simpler",
			ErrTooCostly, maxSteps)
	case j.worked+time.Since(j.since) > j.limit:
		return j.timeLimitError()
	case !j.locked && j.lane == Small && j.partSteps > smallSteps:
		return j.moveToLarge()
	}
	return nil
}

// moveToLarge moves work that exceeds the limit of small work to the lane of large work.
func (j *Job) moveToLarge() error {
	j.release()
	if err := j.pool.acquire(j.ctx, Large, j.caller); err != nil {
		j.lane = noLane
		return err
	}
	j.lane, j.since = Large, time.Now()
	return nil
}
