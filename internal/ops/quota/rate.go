package quota

import (
	"sync/atomic"
	"time"
)

// rate is a token bucket with the tokens of one second. Its state is one number: the
// time at which the bucket will be full again. So it needs no refill timer, and taking a
// token is one compare-and-swap.
type rate struct {
	limit  atomic.Int64 // tokens per second; 0 means no limit
	fullAt atomic.Int64 // nanoseconds since Organization.started
}

const burst = int64(time.Second)

// take takes n tokens and returns 0, or returns how long the caller must wait for them.
func (r *rate) take(at, n int64) (wait time.Duration) {
	limit := r.limit.Load()
	if limit == 0 {
		return 0
	}
	cost := max(1, n*int64(time.Second)/limit)
	for {
		full := r.fullAt.Load()
		next := max(full, at) + cost
		if over := next - at - max(burst, cost); over > 0 {
			return time.Duration(over)
		}
		if r.fullAt.CompareAndSwap(full, next) {
			return 0
		}
	}
}

// spend takes n tokens even if the bucket has fewer. Later calls wait until the debt is
// paid.
func (r *rate) spend(at, n int64) {
	limit := r.limit.Load()
	if limit == 0 || n <= 0 {
		return
	}
	cost := int64(float64(n) / float64(limit) * float64(time.Second))
	for {
		full := r.fullAt.Load()
		if r.fullAt.CompareAndSwap(full, max(full, at)+cost) {
			return
		}
	}
}

// debt returns how long it takes until the bucket has a token again.
func (r *rate) debt(at int64) time.Duration {
	if r.limit.Load() == 0 {
		return 0
	}
	return time.Duration(max(0, r.fullAt.Load()-at-burst))
}

// used returns how many tokens of the last second were taken.
func (r *rate) used(at int64) int64 {
	taken := max(0, r.fullAt.Load()-at)
	return int64(float64(taken) / float64(time.Second) * float64(r.limit.Load()))
}
