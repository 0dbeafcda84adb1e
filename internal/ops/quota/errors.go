package quota

import (
	"fmt"
	"time"

	"freshet/internal/base/errs"
)

// ErrExhausted is what every refusal for want of room is, ErrThrottled what every
// refusal of a call that comes too soon is.
var (
	ErrExhausted = errs.New(errs.Exhausted, "exceeded quota")
	ErrThrottled = errs.New(errs.Throttled, "calls come too fast")
)

// exhausted says whose limit is reached, with the figures and what to do.
func exhausted(whose string, r Resource, used, asked, limit int64, byOwner bool) error {
	todo := "delete some, or have an administrator of the server raise quotas." + r.String()
	if byOwner {
		todo = "delete some, or raise " + KeyPrefix + r.String() + " in spec.config.custom of the cluster"
	}
	return errs.Newf(errs.Exhausted, "%w: %s uses %d of %d %s and %d more would be needed; %s", ErrExhausted, whose,
		used, limit, r, asked, todo)
}

// Throttled is a call that came too soon.
type Throttled struct {
	text  string
	After time.Duration // until the next call has a chance
}

// Error implements error; the text is for the caller.
func (t *Throttled) Error() string { return t.text }

// Unwrap gives it a kind.
func (t *Throttled) Unwrap() error { return ErrThrottled }

// Seconds is the value of the header Retry-After: whole seconds, at least one.
func (t *Throttled) Seconds() int {
	return max(1, int((t.After+time.Second-1)/time.Second))
}

func throttled(whose string, r Resource, limit int64, after time.Duration) error {
	return &Throttled{After: after, text: fmt.Sprintf("%s is limited to %d %s; try again in %s, or have an "+
		"administrator of the server raise quotas.%s",
		whose, limit, r, max(after, time.Millisecond).Round(time.Millisecond), r)}
}
