package replicated

import (
	"log/slog"
	"time"
)

// What passes by itself in seconds, such as an election of etcd's, is no news for an
// operator, and six shards that say it every second would hide what is.
const (
	grumbleAfter = 10 * time.Second // a failure lasts before it is worth a warning
	grumbleGap   = 5 * time.Second  // without a failure is the end of it
	grumbleEvery = 10 * time.Minute // it is said again
)

// grumble decides how loudly a failure is told that is tried again. One goroutine uses
// it.
type grumble struct{ first, last, told time.Time }

// level is that of a failure now.
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
