package telemetry

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// While the members of an ensemble start, and while one of them is down, etcd and NATS
// log dozens of warnings. Package membership logs one line for a lost member and one for
// a lost majority. So a recurring warning of a library is logged only if it persists:
// then it may be the only hint at the cause.

const (
	lasts     = 30 * time.Second // how long a warning must recur before it is logged
	isOver    = time.Minute      // time without the warning after which it counts as new
	againAt   = 10 * time.Minute // interval at which a persisting warning is logged again
	maxAbouts = 256              // maximum number of tracked warnings
)

// complaints are the beginnings of warnings and errors that are logged only if they
// persist.
var complaints = []string{
	// etcd, about other members.
	"prober detected unhealthy status", "lost TCP streaming connection with remote peer", "peer became inactive",
	"failed to reach the peer URL", "failed to get version", "failed to dial", "dropped internal Raft message since",
	// etcd, about members that it queries before it joins them.
	"failed to get cluster response", "failed to unmarshal cluster response", "failed to unmarshal response",
	"failed to convert response", "failed to get downgrade enabled status",
	// etcd, about a slow machine or a slow majority.
	"leader failed to send out heartbeat on time", "apply request took too long",
	"waiting for ReadIndex response took too long",
	"timed out waiting for read index response", "ignored out-of-date read index response", "request stats",
	"failed to apply request",
	// etcd's client, which also returns the error to its caller.
	"retrying of unary invoker failed",
	// NATS, about other members and about streams without a majority.
	"Error trying to connect to route", "Waiting for routing to be established",
	"JetStream has not established contact with a meta leader",
	"JetStream is not current with the meta leader", "JetStream cluster stream", "JetStream cluster consumer",
	"Catchup for stream",
}

// ordinaries are the beginnings of warnings of NATS that are irrelevant here: the
// maximum message size is chosen deliberately, and indexes are rebuilt after a crash.
var ordinaries = []string{"Maximum payloads over", "Metalayer blocking snapshot"}

// ordinary reports whether a warning of NATS is irrelevant.
func ordinary(message string) bool {
	for _, beginning := range ordinaries {
		if strings.HasPrefix(message, beginning) {
			return true
		}
	}
	return strings.HasPrefix(message, "Filestore [") &&
		(strings.Contains(message, "Stream state outdated, last block has additional entries") ||
			strings.HasSuffix(message, "prior state file"))
}

// passing returns the key of a warning that is logged only if it persists; "" for other
// records. The key has the peer, so that warnings about different members are separate.
func passing(record *slog.Record) string {
	if record.Level < slog.LevelWarn {
		return ""
	}
	for _, beginning := range complaints {
		if !strings.HasPrefix(record.Message, beginning) {
			continue
		}
		about := beginning
		record.Attrs(func(attr slog.Attr) bool {
			if attr.Key == "remote-peer-id" {
				about += " " + attr.Value.String()
			}
			return true
		})
		if _, dialed, ok := strings.Cut(record.Message, "dial tcp "); ok {
			address, _, _ := strings.Cut(dialed, ": ")
			about += " " + address
		}
		return about
	}
	return ""
}

// patience tracks recurring warnings of one library.
type patience struct {
	mu  sync.Mutex // protects all
	all map[string]*complaint
}

type complaint struct{ first, last, told time.Time }

// level returns the level to log a recurring warning at.
func (p *patience) level(about string, now time.Time) slog.Level {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.all[about]
	if c == nil || now.Sub(c.last) > isOver {
		if p.all == nil || len(p.all) >= maxAbouts {
			p.all = make(map[string]*complaint)
		}
		c = &complaint{first: now}
		p.all[about] = c
	}
	c.last = now
	if now.Sub(c.first) < lasts || now.Sub(c.told) < againAt {
		return slog.LevelDebug
	}
	c.told = now
	return slog.LevelWarn
}
