package membership

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"freshet/internal/base/lograte"
)

// changeLogger logs when members join and leave, once each. It is used by one goroutine.
type changeLogger struct {
	log   *slog.Logger
	self  string
	known map[string]Record // the members at the last call; nil before the first
}

// logChanges logs the changes since the last call.
func (n *changeLogger) logChanges(live map[string]Record) {
	before := n.known
	n.known = maps.Clone(live)
	if before == nil {
		return // each member logs its own start
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := live[name]; there || name == n.self {
			continue
		}
		if before[name].Ready {
			n.log.Warn("member is lost: its process or machine has stopped, or it does not reach the other members; "+
				"see freshet ensemble status", slog.String("member", name))
		} else {
			n.log.Info("member has left the ensemble", slog.String("member", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(live)) {
		was, there := before[name]
		if name == n.self || there && (was.Ready || !live[name].Ready) {
			continue
		}
		if live[name].Ready {
			n.log.Info("member is ready", slog.String("member", name))
		}
	}
}

// retryWarnings limits a warning that is repeated with every retry; repetitions in between are
// logged at debug.
var retryWarnings = lograte.Policy{Interval: time.Minute}
