package ensemble

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/lograte"
)

const (
	// clockMaxAge is the age after which a measured difference of a clock does not count any more.
	clockMaxAge = 30 * time.Second
	// clockMaxRound bounds the duration of a call that measures a clock: half of it is the error.
	clockMaxRound = time.Second
)

// clocks measures the clocks of the other members against that of this one, with the calls that
// members send each other anyway. A member whose clock is wrong corrects the time of the tokens that
// it issues and checks; leases do not depend on it, because they use the monotonic clock and end
// early rather than late when the wall clock jumps.
type clocks struct {
	log   *slog.Logger
	now   func() time.Time // the clock of this member
	lines *lograte.Limiter
	// correction is added to the clock of this member, in nanoseconds.
	correction atomic.Int64

	mu       sync.Mutex // protects measured; a leaf lock
	measured map[string]measuredClock
}

// measuredClock is how far the clock of a member was ahead of that of this member.
type measuredClock struct {
	ahead time.Duration
	at    time.Time
}

func newClocks(log *slog.Logger, now func() time.Time) *clocks {
	return &clocks{
		log: log, now: now, lines: lograte.New(lograte.Policy{Interval: time.Minute, Forget: time.Minute}),
		measured: map[string]measuredClock{},
	}
}

// clockAhead returns how far a clock is ahead that had the time other in the middle of a call.
func clockAhead(began, ended, other time.Time) time.Duration {
	return other.Sub(began.Add(ended.Sub(began) / 2))
}

// record records that the clock of a member had the time other in the middle of a call.
func (c *clocks) record(member string, began, ended, other time.Time) {
	if ended.Sub(began) > clockMaxRound || other.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.measured[member] = measuredClock{clockAhead(began, ended, other), ended}
	values := []time.Duration{0} // the clock of this member
	for _, m := range c.measured {
		if ended.Sub(m.at) < clockMaxAge {
			values = append(values, m.ahead)
		}
	}
	correction := correctionOf(values)
	c.correction.Store(int64(correction))
	if correction == 0 {
		return
	}
	if ok, _ := c.lines.Allow("clock"); ok {
		c.log.Warn("clock of this member differs from the clocks of the other members; synchronize it with NTP; until "+
			"then, this member issues and checks tokens with the time of the others",
			slog.Duration("behind", correction))
	}
}

// apart returns how far the clocks of the members differ, this one included; 0 if that is normal.
func (c *clocks) apart() time.Duration {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	first, last := time.Duration(0), time.Duration(0) // the clock of this member
	for _, m := range c.measured {
		if now.Sub(m.at) < clockMaxAge {
			first, last = min(first, m.ahead), max(last, m.ahead)
		}
	}
	if last-first <= maxSkew {
		return 0
	}
	return last - first
}

// correctionOf returns what a member adds to its clock, whose value is the 0 among values: the median
// of all clocks. Two clocks do not show which of them is wrong, and a small difference is normal.
func correctionOf(values []time.Duration) time.Duration {
	if len(values) < 3 {
		return 0
	}
	slices.Sort(values)
	low, high := values[(len(values)-1)/2], values[len(values)/2]
	median := low // of the two in the middle, the one that changes less
	if high.Abs() < low.Abs() {
		median = high
	}
	if median.Abs() <= maxSkew {
		return 0
	}
	return median
}

// time returns the time of the ensemble.
func (c *clocks) time() time.Time { return c.now().Add(time.Duration(c.correction.Load())) }

// Now returns the time of the ensemble: that of this member's clock, unless most of the others differ
// from it.
func (m *Member) Now() time.Time { return m.clocks.time() }
