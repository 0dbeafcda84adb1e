package pipeline

import (
	"errors"
	"strconv"

	"freshet/internal/ops/quota"
)

// RetryAfter is the header Retry-After of a refusal that passes by itself.
func RetryAfter(err error) string {
	var throttled *quota.Throttled
	if errors.As(err, &throttled) {
		return strconv.Itoa(throttled.Seconds())
	}
	return "1"
}
