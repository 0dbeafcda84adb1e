package kafkaapi

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxThrottle bounds how long a client is told to wait at once; what is left of
// its debt is for the next request.
const maxThrottle = 30 * time.Second

// throttle counts a request and its answer against the quotas of the cluster. Who
// is over them gets the answer with the milliseconds to wait (KIP-219), and nothing
// more is read from it until then.
func (c *conn) throttle(a *answer, bytes int) (millis int32) {
	if a.session == nil || a.session.who.System {
		return 0
	}
	delay := min(a.session.cluster.Quota.Delay(int64(a.size+bytes)), maxThrottle)
	if delay < time.Millisecond {
		return 0
	}
	c.server.throttled.Add(1)
	c.muted.Store(time.Now().Add(delay).UnixNano())
	return int32(delay.Milliseconds()) //nolint:gosec // bounded above
}

// mute waits until the client may be heard again.
func (c *conn) mute(ctx context.Context) error {
	for {
		wait := time.Until(time.Unix(0, c.muted.Load()))
		if wait <= 0 {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-c.server.draining.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// setThrottle tells a client how long it has to wait, in answers that have a field
// for it.
func setThrottle(b encodable, millis int32) {
	if r, ok := b.(kmsg.SetThrottleResponse); ok {
		r.SetThrottle(millis)
	}
}
