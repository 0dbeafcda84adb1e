package groups

import "freshet/internal/base/errs"

// What the coordinator returns; compare with errors.Is. Package streamapi has
// the table of their codes.
var (
	ErrGroupID        = errs.New(errs.Invalid, "group id is empty or longer than 249 bytes")
	ErrSessionTimeout = errs.New(errs.Invalid, "session timeout is not between 6 s and 30 min")
	ErrUnknownMember  = errs.New(errs.NotFound, "member is not in the group; join it again")
	ErrGeneration     = errs.New(errs.Conflict, "generation of the group is over; join it again")
	ErrProtocol       = errs.New(errs.Conflict, "members of the group have no protocol in common with this one")
	ErrRebalancing    = errs.New(errs.Conflict, "group is rebalancing; join it again")
	ErrFenced         = errs.New(errs.Conflict, "another process took the place of this instance id")
	ErrMemberID       = errs.New(errs.Precondition, "member has no id yet; join again with the one it was given")
	ErrGroupFull      = errs.New(errs.Precondition,
		"group has as many members as it may have, or they take as much memory as they may")
	ErrTooManyGroups = errs.New(errs.Precondition,
		"cluster has as many groups as it may have; delete some that are not in use")
	ErrTooLarge       = errs.New(errs.TooLarge, "metadata or assignment of a member is too large")
	ErrOffsetMetadata = errs.New(errs.TooLarge, "metadata of a committed offset is longer than 4096 bytes")
	ErrTooManyOffsets = errs.New(errs.TooLarge, "more partitions in one commit than the limit allows; commit in parts")
	ErrNotEmpty       = errs.New(errs.Conflict, "group has members; stop its consumers first")
	ErrNoGroup        = errs.New(errs.NotFound, "group does not exist")
	ErrNotConsumers   = errs.Newf(errs.NotFound,
		"%w with the consumer protocol; while it has members of the classic one, use that", ErrNoGroup)
	ErrFencedEpoch = errs.New(errs.Conflict,
		"member epoch is not the one that the member was told; give up all partitions and join again")
	ErrStaleEpoch = errs.New(errs.Conflict,
		"member epoch is not the present one; try again after the next heartbeat")
	ErrUnreleased    = errs.New(errs.Conflict, "instance id is in use by another member; wait until it leaves")
	ErrAssignor      = errs.New(errs.Invalid, "assignor is not known")
	ErrPattern       = errs.New(errs.Invalid, "regular expression of a subscription is not valid")
	ErrRequest       = errs.New(errs.Invalid, "heartbeat of a consumer group is not valid")
	ErrCommitVersion = errs.New(errs.Invalid,
		"members of the consumer protocol commit with OffsetCommit version 9 or above")
	ErrTooManyPartitions = errs.New(errs.TooLarge,
		"group subscribes to more partitions than the limit allows; use several groups")
	ErrNotCoordinator = errs.New(errs.Unavailable,
		"another member of the cluster coordinates the group; ask which one and go there")
	ErrClosed = errs.New(errs.Unavailable, "coordinator is closing; try again shortly")
)
