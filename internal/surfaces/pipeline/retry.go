package pipeline

import (
	"errors"
	"strconv"
	"time"

	"freshet/internal/ops/quota"
)

// RetryAfter returns the Retry-After header for a temporary error, in seconds.
func RetryAfter(err error) string {
	var throttled *quota.Throttled
	if errors.As(err, &throttled) {
		return RetryAfterDelay(throttled.After)
	}
	return "1"
}

// RetryAfterDelay returns the Retry-After header for a delay.
func RetryAfterDelay(delay time.Duration) string { return strconv.Itoa(RetrySeconds(delay)) }

// RetrySeconds returns a delay as clients get it: in whole seconds, at least one.
func RetrySeconds(delay time.Duration) int {
	return max(1, int((delay+time.Second-1)/time.Second))
}
