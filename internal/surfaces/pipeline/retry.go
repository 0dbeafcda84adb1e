package pipeline

import (
	"errors"
	"strconv"

	"freshet/internal/ops/quota"
)

// RetryAfter returns the Retry-After header for a temporary error, in seconds.
func RetryAfter(err error) string {
	var throttled *quota.Throttled
	if errors.As(err, &throttled) {
		return strconv.Itoa(throttled.Seconds())
	}
	return "1"
}
