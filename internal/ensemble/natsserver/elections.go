package natsserver

import (
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	_ "github.com/nats-io/nats-server/v2/server" // declares the linked variables
)

// Timing of leader elections. When a server is lost, the remaining servers wait for the
// election timeout before they elect a new leader for each of its streams, and a shard
// accepts no writes in that time. The timeout of nats-server is 4 to 9 seconds, chosen for
// links between continents, and is not configurable. The members of an ensemble are near
// each other, and a shard must have an owner within 5 seconds of a crash
// (docs/adr/0036-elections.md). A premature election costs time only: which messages are
// committed does not depend on clocks.
const (
	heartbeatInterval  = 500 * time.Millisecond
	minElectionTimeout = 2 * time.Second
	maxElectionTimeout = 3500 * time.Millisecond
)

// The variables of nats-server. This file is the only one that uses go:linkname.
// elections_test.go fails when a version of nats-server has renamed them, has changed their
// defaults, or does not read them.

//go:linkname natsHeartbeatInterval github.com/nats-io/nats-server/v2/server.hbInterval
var natsHeartbeatInterval time.Duration

//go:linkname natsMinElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
var natsMinElectionTimeout time.Duration

//go:linkname natsMaxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
var natsMaxElectionTimeout time.Duration

// setElectionTimeouts sets the timing. Start calls it before the first server of the process runs,
// because servers read the variables without a lock.
var setElectionTimeouts = sync.OnceFunc(func() {
	natsHeartbeatInterval, natsMinElectionTimeout, natsMaxElectionTimeout = heartbeatInterval, minElectionTimeout,
		maxElectionTimeout
})
