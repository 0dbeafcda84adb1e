package engine

import (
	"fmt"

	"freshet/internal/base/errs"
)

// The additional errors of engines in an ensemble; compare with errors.Is.
var (
	ErrNotOwner = errs.New(errs.Unavailable, "another member of the ensemble owns the topic's shard; try again")
	ErrNoOwner  = errs.New(errs.Unavailable,
		"no member of the ensemble owns the topic's shard at the moment; try again shortly")
	// ErrNotBegun is an ErrNotOwner that guarantees that the call had no effect, so that
	// the caller may repeat it at the new owner. After any other ErrNotOwner a write may
	// or may not have taken effect.
	ErrNotBegun = fmt.Errorf("%w", ErrNotOwner)
)

// Owner is the member that may write to a shard.
type Owner struct {
	Member string // "" when the shard has no owner
	Epoch  uint64 // grows with every change of owner
}
