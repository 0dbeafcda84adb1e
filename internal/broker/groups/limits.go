package groups

import "time"

// Bounds of a coordinator (docs/spec/stream.md#limits).
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
	maxBytes      = 256 << 20 // and of all groups of a cluster

	maxSubscribed      = 10_000  // topics that a member names
	maxPattern         = 1024    // bytes of a regular expression
	maxPatternSteps    = 4096    // instructions of its program
	maxGroupPartitions = 100_000 // of all topics that a group of the consumer protocol subscribes to

	// consumerSession is how long a member of the consumer protocol may be silent.
	consumerSession = 45 * time.Second
	// DefaultHeartbeat is how often such members are told to say that they live.
	DefaultHeartbeat = 5 * time.Second

	// DefaultInitialDelay is how long the first member of a group waits for
	// company.
	DefaultInitialDelay = 250 * time.Millisecond
	// retention is how long a group without members keeps its offsets.
	retention = 7 * 24 * time.Hour
	// sweep is how often groups are looked through for those past it.
	sweep = time.Hour
)
