package kafkaapi

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// write sends responses in the order of their requests.
func (c *conn) write(ctx context.Context) error {
	defer c.endFetchSession()
	var failed error
	for a := range c.responses {
		if failed == nil {
			if failed = c.send(ctx, a); failed != nil {
				c.cancel() // stop the reader
				_ = c.socket.SetReadDeadline(time.Unix(1, 0))
			}
		}
		a.releaseRequest()
		c.queuedResponses.Add(-1)
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
	response, err := a.build(ctx)
	if a.responseMemory != nil {
		defer func() { a.responseMemory.release() }()
	}
	if a.free != nil {
		defer a.free()
	}
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
	out, size := encode(a, response)
	if delay := c.throttle(a, size); delay > 0 {
		setThrottle(response, delay)
		out, size = encode(a, response)
	}
	if size > smallFrame && (a.responseMemory == nil || a.responseMemory.bytes == 0) {
		held, err := c.reserveMemory(ctx, c.server.responseMemory, int64(size))
		if err != nil {
			return err
		}
		defer held.release()
	}
	if counted := c.server.requests[a.key]; counted != nil {
		defer func() { counted.add(a, size) }()
	}
	return c.writeAll(out, size)
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
