package membership

import (
	"log/slog"
	"maps"
	"slices"
	"time"
)

// news tells operators who comes and goes, once each. One goroutine uses it.
type news struct {
	log   *slog.Logger
	self  string
	known map[string]Record // nil before the first look
}

// tell logs what has changed since the last look.
func (n *news) tell(live map[string]Record) {
	before := n.known
	n.known = maps.Clone(live)
	if before == nil {
		return // who starts says so itself
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := live[name]; there || name == n.self {
			continue
		}
		if before[name].Ready {
			n.log.Warn("a member of the group is lost: its process or its machine is gone, or it does not reach the "+
				"others; see freshet cluster status", slog.String("member", name))
		} else {
			n.log.Info("a member of the group has left", slog.String("member", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(live)) {
		was, there := before[name]
		if name == n.self || there && (was.Ready || !live[name].Ready) {
			continue
		}
		if live[name].Ready {
			n.log.Info("a member of the group is there and ready", slog.String("member", name))
		}
	}
}

// repeatAfter is how long a warning that is repeated stays at debug level.
const repeatAfter = time.Minute

// seldom keeps a warning that is repeated at every try from filling the log. One
// goroutine uses it.
type seldom struct{ told time.Time }

// level is that of the warning now.
func (s *seldom) level() slog.Level {
	if time.Since(s.told) < repeatAfter {
		return slog.LevelDebug
	}
	s.told = time.Now()
	return slog.LevelWarn
}
