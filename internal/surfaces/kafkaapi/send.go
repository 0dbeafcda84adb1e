package kafkaapi

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"freshet/internal/base/fairshare"
)

// write sends responses in the order of their requests.
func (c *conn) write(ctx context.Context) error {
	defer c.endFetchSession()
	defer c.endShareSession()
	var failed error
	for a := range c.responses {
		if failed == nil {
			if failed = c.send(ctx, a); failed != nil {
				c.cancel() // stop the reader
				_ = c.socket.SetReadDeadline(time.Unix(1, 0))
			}
		}
		a.requestRoom.release()
		c.queuedResponses.Add(-1)
		if a.waits {
			c.waiting.Done()
		}
	}
	return failed
}

var errRevoked = errors.New("credential has expired or was revoked")

// send builds a response and writes it.
func (c *conn) send(ctx context.Context, a *pendingResponse) error {
	if a.raw != nil {
		body := a.raw()
		if body == nil {
			return io.EOF
		}
		out := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...) //nolint:gosec // a few bytes
		return c.writeAll([][]byte{out}, len(out))
	}
	if a.room != nil {
		defer a.room.release()
	}
	if a.free != nil {
		defer a.free()
	}
	response, out, size, err := c.build(ctx, a)
	if errors.Is(err, errNoResponse) {
		c.throttle(a, 0)
		c.server.requests[a.key].add(a, 0)
		return nil
	}
	if err != nil {
		return err
	}
	if a.session != nil && !a.session.principal.Live() {
		return errRevoked
	}
	if delay := c.throttle(a, size); delay > 0 {
		setThrottle(response, delay)
		out, size = encode(a, response)
	}
	if counted := c.server.requests[a.key]; counted != nil {
		defer func() { counted.add(a, size) }()
	}
	return c.writeAll(out, size)
}

// build builds and encodes a response that has its room. A Fetch has taken its room while it was read.
func (c *conn) build(ctx context.Context, a *pendingResponse) (response encodable, out [][]byte, size int, err error) {
	if a.repeatable && a.room != nil {
		return c.buildRepeatedly(ctx, a)
	}
	response, err = a.build(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	out, size = encode(a, response)
	if needed := int64(size) - a.prepaid; a.room != nil && a.room.bytes() == 0 && needed > uncountedBytes {
		err = a.room.await(ctx, needed)
	}
	return response, out, size, err
}

// buildRepeatedly builds and encodes a response with a permit of describeLimiter. If there is no room for it, the
// response is dropped, and built again when there is room for one of its size. So the responses that exist without
// room are at most as many as the permits.
func (c *conn) buildRepeatedly(ctx context.Context, a *pendingResponse) (encodable, [][]byte, int, error) {
	for {
		permit, err := c.takePermit(ctx, c.server.describeLimiter, a.session)
		if err != nil {
			return nil, nil, 0, err
		}
		response, err := a.build(ctx)
		if err != nil {
			permit.release()
			return nil, nil, 0, err
		}
		out, size := encode(a, response)
		needed := int64(size) - a.prepaid
		fits := a.room.fit(needed, needed)
		permit.release()
		if fits {
			return response, out, size, nil
		}
		if err := a.room.await(ctx, needed+needed/8); err != nil { // it may have grown
			return nil, nil, 0, err
		}
	}
}

// takePermit waits for a permit. The caller must release it.
func (c *conn) takePermit(ctx context.Context, limiter *fairshare.Semaphore, s *session) (reservation, error) {
	caller := c.caller(s)
	n, err := limiter.Acquire(ctx, caller, 1, fairshare.NoTimeout)
	return reservation{caller: caller, pool: limiter, bytes: n}, err
}

// updateDeadline reports whether the deadline *has must be set again, and updates it to wanted+slack. A
// deadline between wanted and wanted+slack stays, because setting a deadline costs more than the
// rest of a small request.
func updateDeadline(has *time.Time, wanted time.Time, slack time.Duration) bool {
	latest := wanted.Add(slack)
	if !has.Before(wanted) && !has.After(latest) {
		return false
	}
	*has = latest
	return true
}

// writeAll writes in several steps, so that the deadline detects a reader without progress.
func (c *conn) writeAll(out [][]byte, size int) error {
	ends := c.transferDeadline(size)
	for len(out) > 0 {
		var some net.Buffers
		some, out = nextWrite(out)
		stall := c.server.opts.Limits.StallTimeout
		deadline, slack := time.Now().Add(stall), stall/4
		if ends.Before(deadline) {
			deadline, slack = ends, 0
		}
		if updateDeadline(&c.writeDeadline, deadline, slack) {
			if err := c.socket.SetWriteDeadline(c.writeDeadline); err != nil {
				return err
			}
		}
		var err error
		if len(some) == 1 {
			_, err = c.socket.Write(some[0])
		} else {
			_, err = some.WriteTo(c.socket)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nextWrite returns the parts to write next and the remaining parts: a large part together with the
// small ones around it. It modifies parts.
func nextWrite(parts [][]byte) (some, rest [][]byte) {
	const most = smallFrame + 4<<10
	if len(parts[0]) > most {
		some, parts[0] = [][]byte{parts[0][:smallFrame]}, parts[0][smallFrame:]
		return some, parts
	}
	n, size := 0, 0
	for n < len(parts) && size+len(parts[n]) <= most {
		size += len(parts[n])
		n++
	}
	return parts[:n], parts[n:]
}
