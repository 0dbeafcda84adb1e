package natsserver

import (
	"testing"
	"time"
)

// natsDefaults are the values that nats-server declares.
var natsDefaults = []time.Duration{natsHeartbeat, natsShortestPatience, natsLongestPatience}

// TestElectionTimesAreThoseOfTheServer fails when nats-server has renamed the variables or
// changed their defaults. Review docs/adr/0036-elections.md then.
func TestElectionTimesAreThoseOfTheServer(t *testing.T) {
	for i, want := range []time.Duration{time.Second, 4 * time.Second, 9 * time.Second} {
		if natsDefaults[i] != want {
			t.Errorf("variable %d of nats-server: got %s, want %s", i, natsDefaults[i], want)
		}
	}
	setElections()
	if natsHeartbeat != heartbeat || natsShortestPatience != shortestPatience ||
		natsLongestPatience != longestPatience {
		t.Errorf("got %s, %s and %s, want the values of setElections", natsHeartbeat, natsShortestPatience,
			natsLongestPatience)
	}
}
