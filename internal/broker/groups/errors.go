package groups

import "freshet/internal/base/errs"

// Errors of the coordinator; compare them with errors.Is. Package kafkaapi maps them to error
// codes.
var (
	ErrGroupID        = errs.New(errs.Invalid, "group id is empty or longer than 249 bytes")
	ErrSessionTimeout = errs.New(errs.Invalid, "session timeout is not between 6 s and 30 min")
	ErrUnknownMember  = errs.New(errs.NotFound, "member is not in the group; rejoin the group")
	ErrGeneration     = errs.New(errs.Conflict, "group generation has ended; rejoin the group")
	ErrProtocol       = errs.New(errs.Conflict,
		"member has no protocol in common with the other members of the group")
	ErrRebalancing      = errs.New(errs.Conflict, "group is rebalancing; rejoin the group")
	ErrFencedInstance   = errs.New(errs.Conflict, "instance id is fenced by another process that uses it")
	ErrMemberIDRequired = errs.New(errs.Precondition,
		"member id is required; join again with the returned member id")
	ErrGroupFull = errs.New(errs.Precondition,
		"group has reached its limit of members or of their memory")
	ErrTooManyGroups = errs.New(errs.Precondition,
		"cluster has reached its limit of groups; delete unused groups")
	ErrTooLarge       = errs.New(errs.TooLarge, "metadata or assignment of a member is too large")
	ErrOffsetMetadata = errs.New(errs.TooLarge, "metadata of a committed offset is longer than 4096 bytes")
	ErrTooManyOffsets = errs.New(errs.TooLarge,
		"more partitions in one commit than the limit allows; commit in parts")
	ErrNotEmpty            = errs.New(errs.Conflict, "group has members; stop its consumers first")
	ErrNoGroup             = errs.New(errs.NotFound, "group does not exist")
	ErrNotConsumerProtocol = errs.Newf(errs.NotFound,
		"%w with the consumer protocol; use the classic protocol while the group has members with it", ErrNoGroup)
	ErrFencedEpoch = errs.New(errs.Conflict,
		"member epoch is fenced; give up all partitions and rejoin the group")
	ErrStaleEpoch = errs.New(errs.Conflict,
		"member epoch is stale; retry after the next heartbeat")
	ErrUnreleasedInstance = errs.New(errs.Conflict, "instance id is in use by another member; wait until it leaves")
	ErrAssignor           = errs.New(errs.Invalid, "assignor is unknown")
	ErrPattern            = errs.New(errs.Invalid, "regular expression of a subscription is not valid")
	ErrInvalidHeartbeat   = errs.New(errs.Invalid, "consumer group heartbeat is not valid")
	ErrCommitVersion      = errs.New(errs.Invalid,
		"members with the consumer protocol must commit with OffsetCommit version 9 or above")
	ErrTooManyPartitions = errs.New(errs.TooLarge,
		"group subscribes to more partitions than the limit allows; use several groups")
	// ErrDenied means that the caller may not use the group, see Caller.May.
	ErrDenied         = errs.New(errs.Denied, "permission to consume all topics of the group is missing")
	ErrNotCoordinator = errs.New(errs.Unavailable,
		"another member of the ensemble coordinates the group; look it up with FindCoordinator")
	ErrClosed = errs.New(errs.Unavailable, "coordinator is closing; try again shortly")
)
