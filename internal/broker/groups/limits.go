package groups

import "time"

// Limits of a coordinator (docs/spec/stream.md#limits).
const (
	maxGroups           = 100_000
	maxMembers          = 5_000
	maxMemberBytes      = 256 << 10 // metadata of all protocols of a member, or its assignment
	maxProtocols        = 100
	maxOffsets          = 10_000 // partitions in one commit
	maxOffsetMetadata   = 4096
	maxGroupID          = 249
	minSessionTimeout   = 6 * time.Second
	maxSessionTimeout   = 30 * time.Minute
	maxRebalanceTimeout = 30 * time.Minute
	maxInstanceID       = 249 // bytes of an instance id

	maxGroupBytes   = 32 << 20  // metadata of all members of a group
	maxClusterBytes = 256 << 20 // metadata of all members of all groups of a cluster

	maxSubscribedTopics    = 10_000  // topics that a member subscribes to by name
	maxPatternBytes        = 1024    // bytes of a regular expression
	maxPatternInstructions = 4096    // instructions of the compiled regular expression
	maxGroupPartitions     = 100_000 // partitions of all topics that a consumer-protocol group subscribes to

	// consumerSessionTimeout is the session timeout of members with the consumer protocol.
	consumerSessionTimeout = 45 * time.Second
	// DefaultHeartbeatInterval is the default heartbeat interval of members with the consumer protocol.
	DefaultHeartbeatInterval = 5 * time.Second

	// DefaultInitialDelay is how long the first rebalance of a group waits for more members by
	// default.
	DefaultInitialDelay = 250 * time.Millisecond
	// offsetRetention is how long the coordinator keeps the offsets of a group without members.
	offsetRetention = 7 * 24 * time.Hour
	// sweepInterval is the interval between searches for groups past their retention.
	sweepInterval = time.Hour
)
