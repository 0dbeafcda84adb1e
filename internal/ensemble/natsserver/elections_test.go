package natsserver

import (
	"testing"
	"time"
)

// natsDefaults are the values that nats-server declares.
var natsDefaults = []time.Duration{natsHeartbeatInterval, natsMinElectionTimeout, natsMaxElectionTimeout}

// TestNATSElectionTimeoutDefaults fails when nats-server has renamed the variables or
// changed their defaults. Review docs/adr/0036-elections.md then.
func TestNATSElectionTimeoutDefaults(t *testing.T) {
	for i, want := range []time.Duration{time.Second, 4 * time.Second, 9 * time.Second} {
		if natsDefaults[i] != want {
			t.Errorf("variable %d of nats-server: got %s, want %s", i, natsDefaults[i], want)
		}
	}
	setElectionTimeouts()
	if natsHeartbeatInterval != heartbeatInterval || natsMinElectionTimeout != minElectionTimeout ||
		natsMaxElectionTimeout != maxElectionTimeout {
		t.Errorf("got %s, %s and %s, want the values of setElections", natsHeartbeatInterval, natsMinElectionTimeout,
			natsMaxElectionTimeout)
	}
}
