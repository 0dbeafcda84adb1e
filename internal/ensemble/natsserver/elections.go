package natsserver

import (
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	_ "github.com/nats-io/nats-server/v2/server" // whose variables these are
)

// When a server is lost, those that are left wait for a while before they elect
// another leader for each of its streams, and a shard takes no writes until they have.
// nats-server waits 4 to 9 seconds and has no option for it: it was made for links
// between continents. The members of a group are neighbours, and promise an owner
// within 5 seconds of a crash (docs/adr/0036-elections.md). Elections that come early
// cost time and nothing else: which messages count does not depend on clocks.
const (
	heartbeat        = 500 * time.Millisecond
	shortestPatience = 2 * time.Second
	longestPatience  = 3500 * time.Millisecond
)

//go:linkname natsHeartbeat github.com/nats-io/nats-server/v2/server.hbInterval
var natsHeartbeat time.Duration

//go:linkname natsShortestPatience github.com/nats-io/nats-server/v2/server.minElectionTimeout
var natsShortestPatience time.Duration

//go:linkname natsLongestPatience github.com/nats-io/nats-server/v2/server.maxElectionTimeout
var natsLongestPatience time.Duration

// setElections is called before the first server of the process starts, since servers
// read the variables without a lock.
var setElections = sync.OnceFunc(func() {
	natsHeartbeat, natsShortestPatience, natsLongestPatience = heartbeat, shortestPatience, longestPatience
})
