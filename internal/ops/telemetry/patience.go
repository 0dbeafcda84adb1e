package telemetry

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// While the members of a group start, and while one of them is down, etcd and NATS
// complain of it by the dozen. That a member is lost, and that there is no majority, is
// told in one line each by who knows it (package members); a complaint of a library is
// told when it lasts, since then it may be all that says what to do.

const (
	lasts     = 30 * time.Second // before a complaint is told
	isOver    = time.Minute      // without one
	againAt   = 10 * time.Minute // it is told again while it lasts
	maxAbouts = 256              // complaints that are kept in mind
)

// complaints are the beginnings of warnings and errors that are told when they last.
var complaints = []string{
	// etcd, of other members.
	"prober detected unhealthy status", "lost TCP streaming connection with remote peer", "peer became inactive",
	"failed to reach the peer URL", "failed to get version", "failed to dial", "dropped internal Raft message since",
	// etcd, of members that it asks before it joins them.
	"failed to get cluster response", "failed to unmarshal cluster response", "failed to unmarshal response",
	"failed to convert response", "failed to get downgrade enabled status",
	// etcd, of a machine or a majority that is slow.
	"leader failed to send out heartbeat on time", "apply request took too long",
	"waiting for ReadIndex response took too long",
	"timed out waiting for read index response", "ignored out-of-date read index response", "request stats",
	"failed to apply request",
	// etcd's client, whose caller is told too.
	"retrying of unary invoker failed",
	// NATS, of other members and of streams without a majority of them.
	"Error trying to connect to route", "Waiting for routing to be established",
	"JetStream has not established contact with a meta leader",
	"JetStream is not current with the meta leader", "JetStream cluster stream", "JetStream cluster consumer",
	"Catchup for stream",
}

// ordinaries are the beginnings of warnings of NATS that mean nothing here: the size of
// messages is chosen, and indexes are made anew after a crash.
var ordinaries = []string{"Maximum payloads over", "Metalayer blocking snapshot"}

// ordinary says whether a warning means nothing.
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

// passing says what a complaint is about that is told when it lasts; "" for others.
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

// patience remembers since when libraries complain. mu guards everything.
type patience struct {
	mu  sync.Mutex
	all map[string]*complaint
}

type complaint struct{ first, last, told time.Time }

// level is how loudly a complaint is told now.
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
