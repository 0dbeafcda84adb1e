package replicated

import (
	"log/slog"
	"time"
)

// Failures that resolve automatically within seconds, such as an election in etcd, need no
// action of the operator, and repeated by every shard they would hide those that do.
const (
	grumbleAfter = 10 * time.Second // a failure that lasts longer is logged as a warning
	grumbleGap   = 5 * time.Second  // without a failure for that long, the next one is a new failure
	grumbleEvery = 10 * time.Minute // interval between two warnings about a lasting failure
)

// grumble limits the rate of warnings about a failure that is retried. It is used by one
// goroutine.
type grumble struct{ first, last, told time.Time }

// level returns the log level for the next failure.
func (g *grumble) level() slog.Level {
	now := time.Now()
	if now.Sub(g.last) > grumbleGap {
		g.first, g.told = now, time.Time{}
	}
	g.last = now
	if now.Sub(g.first) < grumbleAfter || now.Sub(g.told) < grumbleEvery {
		return slog.LevelDebug
	}
	g.told = now
	return slog.LevelWarn
}
