package kafkaapi

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/retry"
)

// maxThrottle bounds the throttle time of one response; the rest applies to later requests.
const maxThrottle = 30 * time.Second

// throttle counts a request and its response against the quotas of the cluster. Over the quota it
// returns the throttle time in milliseconds (KIP-219), and the connection reads nothing until that
// time has passed.
func (c *conn) throttle(a *pendingResponse, bytes int) (millis int32) {
	if a.session == nil || a.session.principal.System {
		return 0
	}
	delay := min(a.session.cluster.Quota.Delay(int64(a.requestSize+bytes)), maxThrottle)
	if delay < time.Millisecond {
		return 0
	}
	c.server.throttled.Add(1)
	c.throttledUntil.Store(time.Now().Add(delay).UnixNano())
	return int32(delay.Milliseconds()) //nolint:gosec // bounded above
}

// waitWhileThrottled waits until the throttling of the client has ended.
func (c *conn) waitWhileThrottled(ctx context.Context) error {
	draining := c.server.draining
	for draining.Err() == nil {
		wait := time.Until(time.Unix(0, c.throttledUntil.Load()))
		if wait <= 0 {
			return nil
		}
		if retry.Wait(ctx, draining.Done(), wait) != nil {
			return ctx.Err()
		}
	}
	return nil
}

// setThrottle sets the throttle time in responses that have a field for it.
func setThrottle(b encodable, millis int32) {
	if r, ok := b.(kmsg.SetThrottleResponse); ok {
		r.SetThrottle(millis)
	}
}
