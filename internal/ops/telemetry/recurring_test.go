package telemetry_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/ops/telemetry"
)

// TestRecurringWarnings: recurring warnings of libraries about missing members are
// logged once, after they persist; all other warnings are logged immediately.
func TestRecurringWarnings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := telemetry.Library(slog.New(slog.NewTextHandler(&out, nil)), "nats")
		for i := range 20 {
			log.Error(fmt.Sprintf("Error trying to connect to route (attempt %d): dial tcp 10.0.0.2:7422: connect: "+
				"connection refused", i))
			log.Warn("lost TCP streaming connection with remote peer",
				slog.String("remote-peer-id", "b")) //nolint:sloglint // etcd's own key
			log.Warn("Maximum payloads over 8.00 MB are generally discouraged and could lead to poor performance")
			log.Warn("Filestore [S-R3F-x] Stream state outdated, last block has additional entries, will rebuild")
			log.Warn("RAFT [k1i3jIye - _meta_] Falling behind in health check, commit 31 != applied 30")
			log.Warn("RAFT [k1i3jIye - _meta_] Health check OK, no longer falling behind")
			log.Warn("JetStream stream '$G > J_x' is not current: group node unhealthy")
			time.Sleep(time.Second) // synctest's fake clock
		}
		if out.Len() > 0 {
			t.Errorf("after 20s: got %s, want no records", out.String())
		}
		for range 60 {
			log.Error("Error trying to connect to route (attempt 9): dial tcp 10.0.0.2:7422: connect: " +
				"connection refused")
			time.Sleep(time.Second)
		}
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") ||
			!strings.Contains(got, "10.0.0.2:7422") {
			t.Errorf("after another minute: got %q, want one warning with the address", got)
		}
		out.Reset()
		for range 60 {
			log.Warn("JetStream stream '$G > J_x' is not current: group node unhealthy")
			time.Sleep(time.Second)
		}
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "J_x") {
			t.Errorf("a stream that stays behind: got %q, want one warning with its name", got)
		}
		out.Reset()
		log.Error("Error trying to connect to route (attempt 1): dial tcp 10.0.0.3:7422: connect: connection refused")
		if out.Len() > 0 {
			t.Errorf("another address: got %q, want no records yet", out.String())
		}
		for _, message := range []string{"Filestore [S-R3F-x] Checksum of a message is wrong", "JetStream resource " +
			"limits exceeded for server", "rejected stream from remote peer because it was removed"} {
			out.Reset()
			log.Warn(message)
			if !strings.Contains(out.String(), message) {
				t.Errorf("%q: got %q, want it logged immediately", message, out.String())
			}
		}
	})
}
