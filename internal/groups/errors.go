package groups

import "freshet/internal/errs"

// What the coordinator returns; compare with errors.Is. Package streamapi has
// the table of their codes.
var (
	ErrGroupID          = errs.New(errs.Invalid, "group id is empty or longer than 249 bytes")
	ErrSessionTimeout   = errs.New(errs.Invalid, "session timeout is not between 6 s and 30 min")
	ErrRebalanceTimeout = errs.New(errs.Invalid, "rebalance timeout is not between 0 and 30 min")
	ErrUnknownMember    = errs.New(errs.NotFound, "member is not in the group; join it again")
	ErrGeneration       = errs.New(errs.Conflict, "generation of the group is over; join it again")
	ErrProtocol         = errs.New(errs.Conflict, "members of the group have no protocol in common with this one")
	ErrRebalancing      = errs.New(errs.Conflict, "group is rebalancing; join it again")
	ErrFenced           = errs.New(errs.Conflict, "another process took the place of this instance id")
	ErrMemberID         = errs.New(errs.Precondition, "member has no id yet; join again with the one it was given")
	ErrGroupFull        = errs.New(errs.Precondition, "group has as many members as it may have")
	ErrTooManyGroups    = errs.New(errs.Precondition, "cluster has as many groups as it may have; delete some that are not in use")
	ErrTooLarge         = errs.New(errs.TooLarge, "metadata or assignment of a member is too large")
	ErrOffsetMetadata   = errs.New(errs.TooLarge, "metadata of a committed offset is longer than 4096 bytes")
	ErrTooManyOffsets   = errs.New(errs.TooLarge, "more partitions in one commit than the limit allows; commit in parts")
	ErrNotEmpty         = errs.New(errs.Conflict, "group has members; stop its consumers first")
	ErrNoGroup          = errs.New(errs.NotFound, "group does not exist")
	ErrClosed           = errs.New(errs.Unavailable, "coordinator is closing; try again shortly")
)
