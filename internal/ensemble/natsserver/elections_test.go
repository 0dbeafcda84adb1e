package natsserver

import (
	"testing"
	"time"
)

// natsDefaults are the variables as nats-server declares them.
var natsDefaults = []time.Duration{natsHeartbeat, natsShortestPatience, natsLongestPatience}

// TestElectionTimesAreThoseOfTheServer fails when nats-server no longer has the
// variables, or gives them other values: then docs/adr/0036-elections.md is to be
// read again.
func TestElectionTimesAreThoseOfTheServer(t *testing.T) {
	for i, want := range []time.Duration{time.Second, 4 * time.Second, 9 * time.Second} {
		if natsDefaults[i] != want {
			t.Errorf("variable %d of nats-server: got %s, want %s", i, natsDefaults[i], want)
		}
	}
	setElections()
	if natsHeartbeat != heartbeat || natsShortestPatience != shortestPatience ||
		natsLongestPatience != longestPatience {
		t.Errorf("got %s, %s and %s, want what was set", natsHeartbeat, natsShortestPatience, natsLongestPatience)
	}
}
