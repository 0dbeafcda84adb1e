package groups

import "time"

// Limits of a coordinator (docs/spec/stream.md#limits).
const (
	maxGroups         = 100_000
	maxMembers        = 5_000
	maxMemberBytes    = 256 << 10 // metadata of all protocols of a member, or its assignment
	maxProtocols      = 100
	maxOffsets        = 10_000 // partitions in one commit
	maxOffsetMetadata = 4096
	maxGroupID        = 249
	minSession        = 6 * time.Second
	maxSession        = 30 * time.Minute
	maxRebalance      = 30 * time.Minute
	maxName           = 249 // bytes of an instance id

	maxGroupBytes = 32 << 20  // metadata of all members of a group
	maxBytes      = 256 << 20 // metadata of all members of all groups of a cluster

	maxSubscribed      = 10_000  // topics that a member subscribes to by name
	maxPattern         = 1024    // bytes of a regular expression
	maxPatternSteps    = 4096    // instructions of the compiled regular expression
	maxGroupPartitions = 100_000 // partitions of all topics that a consumer-protocol group subscribes to

	// consumerSession is the session timeout of members with the consumer protocol.
	consumerSession = 45 * time.Second
	// DefaultHeartbeat is the default heartbeat interval of members with the consumer protocol.
	DefaultHeartbeat = 5 * time.Second

	// DefaultInitialDelay is how long the first rebalance of a group waits for more members by
	// default.
	DefaultInitialDelay = 250 * time.Millisecond
	// retention is how long the coordinator keeps the offsets of a group without members.
	retention = 7 * 24 * time.Hour
	// sweep is the interval between searches for groups past their retention.
	sweep = time.Hour
)
