package streamapi

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// write sends answers in the order of their requests.
func (c *conn) write(ctx context.Context) error {
	defer c.endFetchSession()
	var failed error
	for a := range c.answers {
		if failed == nil {
			if failed = c.send(ctx, a); failed != nil {
				c.cancel() // the reader need not go on
				_ = c.socket.SetReadDeadline(time.Unix(1, 0))
			}
		}
		a.done()
		c.queued.Add(-1)
	}
	return failed
}

var errRevoked = errors.New("credential is no longer good")

// send makes an answer and writes it.
func (c *conn) send(ctx context.Context, a *answer) error {
	var out []byte
	if a.raw != nil {
		body := a.raw()
		if body == nil {
			return io.EOF
		}
		out = append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...) //nolint:gosec // a few bytes
	} else {
		response, err := a.make(ctx)
		if a.reserved != nil {
			defer func() { a.reserved.release() }()
		}
		if errors.Is(err, errSilent) {
			c.throttle(a, 0)
			c.server.requests[a.key].add(a, 0)
			return nil
		}
		if err != nil {
			return err
		}
		if a.session != nil && !a.session.who.Live() {
			return errRevoked
		}
		out = encode(a, response)
		if delay := c.throttle(a, len(out)); delay > 0 {
			setThrottle(response, delay)
			out = encode(a, response)
		}
	}
	if len(out) > smallFrame && (a.reserved == nil || a.reserved.bytes == 0) {
		held, err := c.hold(ctx, c.server.answers, int64(len(out)))
		if err != nil {
			return err
		}
		defer held.release()
	}
	if counted := c.server.requests[a.key]; counted != nil && a.raw == nil {
		defer func() { counted.add(a, len(out)) }()
	}
	return c.writeAll(out)
}

// encode makes the frame of a response.
func encode(a *answer, response kmsg.Response) []byte {
	room := 256
	if a.reserved != nil { // about what it holds
		room += int(a.reserved.bytes) + int(a.reserved.bytes>>6)
	}
	out := make([]byte, 4, room)
	out = binary.BigEndian.AppendUint32(out, uint32(a.correlation)) //nolint:gosec // the wire's numbers are signed
	if a.flexible {
		out = append(out, 0) // no tags
	}
	out = response.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4)) //nolint:gosec // bounded far below
	return out
}

// moved says whether a deadline has to be set anew, and notes it with some slack: one
// that lies between wanted and wanted+slack stays. Setting a deadline costs more than the
// rest of a small request.
func moved(has *time.Time, wanted time.Time, slack time.Duration) bool {
	latest := wanted.Add(slack)
	if !has.Before(wanted) && !has.After(latest) {
		return false
	}
	*has = latest
	return true
}

// writeAll writes in parts, so that a slow reader has to show progress.
func (c *conn) writeAll(out []byte) error {
	ends := c.enough(len(out))
	for len(out) > 0 {
		part := out[:min(len(out), smallFrame)]
		stall := c.server.opts.Limits.WriteStall
		deadline, slack := time.Now().Add(stall), stall/4
		if ends.Before(deadline) {
			deadline, slack = ends, 0
		}
		if moved(&c.writeEnds, deadline, slack) {
			if err := c.socket.SetWriteDeadline(c.writeEnds); err != nil {
				return err
			}
		}
		if _, err := c.socket.Write(part); err != nil {
			return err
		}
		out = out[len(part):]
	}
	return nil
}
