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

	// DefaultInitialDelay is how long the first member of a group waits for
	// company.
	DefaultInitialDelay = 250 * time.Millisecond
	// retention is how long a group without members keeps its offsets.
	retention = 7 * 24 * time.Hour
	// sweep is how often groups are looked through for those past it.
	sweep = time.Hour
)
