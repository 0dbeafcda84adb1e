package engine

import (
	"fmt"

	"freshet/internal/base/errs"
)

// What engines of a group of members return besides; compare with errors.Is.
var (
	ErrNotOwner = errs.New(errs.Unavailable, "another member of the group owns the topic's shard; try again")
	ErrNoOwner  = errs.New(errs.Unavailable,
		"no member of the group owns the topic's shard at the moment; try again shortly")
	// ErrNotBegun is an ErrNotOwner with a promise: nothing of the call has happened,
	// so whoever knows the new owner may make it there. After any other ErrNotOwner a
	// write may or may not have taken effect.
	ErrNotBegun = fmt.Errorf("%w", ErrNotOwner)
)

// Owner is the member that may write to a shard.
type Owner struct {
	Member string // "" when there is none
	Epoch  uint64 // grows with every change of owner
}
