package telemetry

import (
	"log/slog"
	"strings"
	"time"

	"freshet/internal/base/lograte"
)

// While the members of an ensemble start, and while one of them is down, etcd and NATS
// log dozens of warnings. Package membership logs one line for a lost member and one for
// a lost majority. So a recurring warning of a library is logged only if it persists:
// then it may be the only hint at the cause.

var recurring = lograte.Policy{After: 30 * time.Second, Forget: time.Minute, Interval: 10 * time.Minute}

// recurringPrefixes are the beginnings of warnings and errors that are logged only if they
// persist.
var recurringPrefixes = []string{
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
	// etcd, about its own start. It counts the applied changes from 0 until it has applied one, so it takes
	// every stored change for one that waits, rejects its request to publish the member with "too many
	// requests" and sends it again without a pause. A member that cannot be published stays unready.
	"failed to publish local member to cluster through raft",
	// etcd's client, which also returns the error to its caller.
	"retrying of unary invoker failed",
	// NATS, about other members and about streams without a majority.
	"Error trying to connect to route", "Waiting for routing to be established",
	"JetStream has not established contact with a meta leader",
	"JetStream is not current with the meta leader", "JetStream cluster stream", "JetStream cluster consumer",
	"Catchup for stream",
}

// healthChecks are the reasons of NATS, in the middle of a warning, that a health check fails. A member that has just
// started is behind the others for a moment, and is not ready meanwhile.
var healthChecks = []string{"] Falling behind in health check", "' is not current: "}

// irrelevantPrefixes are the beginnings of warnings of NATS that are irrelevant here: the
// maximum message size is chosen deliberately, and indexes are rebuilt after a crash.
var irrelevantPrefixes = []string{"Maximum payloads over", "Metalayer blocking snapshot"}

// isIrrelevant reports whether a warning of NATS is irrelevant.
func isIrrelevant(message string) bool {
	for _, beginning := range irrelevantPrefixes {
		if strings.HasPrefix(message, beginning) {
			return true
		}
	}
	if strings.HasSuffix(message, "] Health check OK, no longer falling behind") {
		return true
	}
	return strings.HasPrefix(message, "Filestore [") &&
		(strings.Contains(message, "Stream state outdated, last block has additional entries") ||
			strings.HasSuffix(message, "prior state file"))
}

// recurringKey returns the key of a warning that is logged only if it persists; "" for other
// records. The key has the peer, so that warnings about different members are separate.
func recurringKey(record *slog.Record) string {
	if record.Level < slog.LevelWarn {
		return ""
	}
	for _, beginning := range recurringPrefixes {
		if !strings.HasPrefix(record.Message, beginning) {
			continue
		}
		key := beginning
		record.Attrs(func(attr slog.Attr) bool {
			if attr.Key == "remote-peer-id" {
				key += " " + attr.Value.String()
			}
			return true
		})
		if _, dialed, ok := strings.Cut(record.Message, "dial tcp "); ok {
			address, _, _ := strings.Cut(dialed, ": ")
			key += " " + address
		}
		return key
	}
	for _, reason := range healthChecks {
		if strings.Contains(record.Message, reason) {
			return reason
		}
	}
	return ""
}
