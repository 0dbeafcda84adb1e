package quota

import (
	"fmt"
	"time"

	"freshet/internal/base/errs"
)

// ErrExhausted matches every error of an exceeded limit, ErrThrottled every error of an
// exceeded rate.
var (
	ErrExhausted = errs.New(errs.Exhausted, "exceeded quota")
	ErrThrottled = errs.New(errs.Throttled, "exceeded rate of calls")
	// ErrBuffersFull matches the error of a message that does not fit into the memory of its cluster now.
	ErrBuffersFull = errs.New(errs.Unavailable, "buffers of the cluster are full")
)

// exhausted returns the error of an exceeded limit, with the numbers and what to do.
func exhausted(owner string, r Resource, used, requested, limit int64, byOwner bool) error {
	advice := "delete some, or ask an administrator of the server to raise quotas." + r.String()
	if byOwner {
		advice = "delete some, or raise " + KeyPrefix + r.String() + " in spec.config.custom of the cluster"
		if r == StoredBytes {
			advice = "delete some, or raise ledgerDisk in spec.storage.resources or " + KeyPrefix + r.String() +
				" in spec.config.custom of the cluster, whichever is set"
		}
	}
	return errs.Newf(errs.Exhausted, "%w: %s uses %d of %d %s and %d more would be needed; %s", ErrExhausted, owner,
		used, limit, r, requested, advice)
}

// Throttled is the error of a call that exceeds a rate.
type Throttled struct {
	text  string
	After time.Duration // how long to wait before a retry
}

// Error implements error; callers see the text.
func (t *Throttled) Error() string { return t.text }

// Unwrap returns ErrThrottled, which has the kind.
func (t *Throttled) Unwrap() error { return ErrThrottled }

func throttled(owner string, r Resource, limit int64, after time.Duration) error {
	return &Throttled{After: after, text: fmt.Sprintf("%s is limited to %d %s; try again in %s, or ask an "+
		"administrator of the server to raise quotas.%s",
		owner, limit, r, max(after, time.Millisecond).Round(time.Millisecond), r)}
}
