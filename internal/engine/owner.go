package engine

import "freshet/internal/errs"

// What engines of a group of members return besides; compare with errors.Is.
var (
	ErrNotOwner = errs.New(errs.Unavailable, "another member of the group owns the topic's shard; try again")
	ErrNoOwner  = errs.New(errs.Unavailable, "no member of the group owns the topic's shard at the moment; try again shortly")
)

// Owner is the member that may write to a shard.
type Owner struct {
	Member string // "" when there is none
	Epoch  uint64 // grows with every change of owner
}
