package quota

import (
	"sync/atomic"
	"time"
)

// rate is a token bucket that holds the tokens of one second. It is one number:
// when the bucket will be full again. Nothing is kept while nobody calls, and
// taking a token is one compare-and-swap.
type rate struct {
	limit atomic.Int64 // tokens per second; 0 is no limit
	full  atomic.Int64 // nanoseconds since Organization.began
}

const burst = int64(time.Second)

// take takes n tokens if there are as many, or says how long that will take.
func (r *rate) take(at, n int64) (wait time.Duration) {
	limit := r.limit.Load()
	if limit == 0 {
		return 0
	}
	cost := max(1, n*int64(time.Second)/limit)
	for {
		full := r.full.Load()
		next := max(full, at) + cost
		if over := next - at - max(burst, cost); over > 0 {
			return time.Duration(over)
		}
		if r.full.CompareAndSwap(full, next) {
			return 0
		}
	}
}

// spend takes n tokens whether they are there or not: what came through has come
// through, and later calls wait for it.
func (r *rate) spend(at, n int64) {
	limit := r.limit.Load()
	if limit == 0 || n <= 0 {
		return
	}
	cost := int64(float64(n) / float64(limit) * float64(time.Second))
	for {
		full := r.full.Load()
		if r.full.CompareAndSwap(full, max(full, at)+cost) {
			return
		}
	}
}

// debt says how long it takes until there is a token again.
func (r *rate) debt(at int64) time.Duration {
	if r.limit.Load() == 0 {
		return 0
	}
	return time.Duration(max(0, r.full.Load()-at-burst))
}

// used is how many tokens of the last second are gone.
func (r *rate) used(at int64) int64 {
	gone := max(0, r.full.Load()-at)
	return int64(float64(gone) / float64(time.Second) * float64(r.limit.Load()))
}
