package replicated

import (
	"log/slog"
	"time"
)

// Failures that resolve automatically within seconds, such as an election in etcd, need no
// action of the operator, and repeated by every shard they would hide those that do.
const (
	warnAfter    = 10 * time.Second // a failure that lasts longer is logged as a warning
	failureGap   = 5 * time.Second  // without a failure for that long, the next one is a new failure
	warnInterval = 10 * time.Minute // interval between two warnings about a lasting failure
)

// warnLimiter limits the rate of warnings about a failure that is retried. It is used by one
// goroutine.
type warnLimiter struct{ first, last, lastWarned time.Time }

// level returns the log level for the next failure.
func (g *warnLimiter) level() slog.Level {
	now := time.Now()
	if now.Sub(g.last) > failureGap {
		g.first, g.lastWarned = now, time.Time{}
	}
	g.last = now
	if now.Sub(g.first) < warnAfter || now.Sub(g.lastWarned) < warnInterval {
		return slog.LevelDebug
	}
	g.lastWarned = now
	return slog.LevelWarn
}
