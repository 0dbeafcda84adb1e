package kafkaapi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/semaphore"
)

// Errors that end a connection; the log shows them.
var (
	errFrameSize = errors.New("frame is larger than the limit")
	errTLS       = errors.New(
		"client speaks TLS to the plain listener; use the listener for TLS, or security.protocol=SASL_PLAINTEXT")
	errHTTP = errors.New("client speaks HTTP to a listener of the stream protocol; use the port for HTTP")
)

// readFrame reads the next frame. held goes back to the server's memory when the
// frame is not needed any more.
func (c *conn) readFrame(ctx context.Context, limit int,
	patience time.Duration,
) (frame []byte, held holding, err error) {
	ends, slack := time.Now().Add(patience), time.Duration(0)
	if c.auth.session != nil {
		slack = patience / 20
	}
	if err := c.readUntil(ends, slack); err != nil {
		return nil, held, err
	}
	if c.closing.Load() { // this deadline may have replaced that of drain
		return nil, held, io.EOF
	}
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, held, err
	}
	size := int32(binary.BigEndian.Uint32(head[:])) //nolint:gosec // the wire's numbers are signed
	if size < 0 || int(size) > limit {
		return nil, held, fmt.Errorf("%w: %w", guess(head),
			fmt.Errorf("%w: %d bytes, the limit is %d", errFrameSize, size, limit))
	}
	// A large frame gets room when some of it is there: clients that announce
	// much and send nothing take none.
	small, pool := smallFrame, c.server.frames
	if c.auth.session == nil {
		small, pool = smallBeforeAuth, c.server.beforeAuth // they have many connections
	} else {
		ends = c.enough(int(size))
	}
	frame = make([]byte, min(int(size), small))
	if err := c.readPart(frame, ends); err != nil {
		return nil, held, err
	}
	if int(size) <= small {
		return frame, held, nil
	}
	if held, err = c.hold(ctx, pool, int64(size)); err != nil {
		return nil, held, err
	}
	if c.auth.session != nil {
		ends = c.enough(int(size)) // waiting for room is not the client's fault
	}
	whole := make([]byte, size)
	for rest := whole[copy(whole, frame):]; len(rest) > 0; {
		part := rest[:min(len(rest), smallFrame)]
		if err := c.readPart(part, ends); err != nil {
			held.release()
			return nil, holding{}, err
		}
		rest = rest[len(part):]
	}
	return whole, held, nil
}

// enough is when a client must have sent or taken so many bytes: one that shows
// little progress again and again must not keep the room of others for hours.
func (c *conn) enough(bytes int) time.Time {
	return time.Now().Add(c.server.opts.Limits.WriteStall + time.Duration(bytes)*time.Second/slowestClient)
}

// readPart reads one part of a frame, for which there is as much time as a slow
// writer gets, but not longer than the whole has. Strangers have no more than they
// have to authenticate.
func (c *conn) readPart(part []byte, ends time.Time) error {
	if c.in.Buffered() < len(part) {
		deadline := time.Now().Add(c.server.opts.Limits.WriteStall)
		if ends.Before(deadline) {
			deadline = ends
		}
		if err := c.readUntil(deadline, 0); err != nil {
			return err
		}
	}
	_, err := io.ReadFull(c.in, part)
	return err
}

// readUntil gives the socket a deadline, unless it has one that is about the same.
func (c *conn) readUntil(deadline time.Time, slack time.Duration) error {
	if !moved(&c.readEnds, deadline, slack) {
		return nil
	}
	return c.socket.SetReadDeadline(c.readEnds)
}

// guess says what a client speaks whose first bytes are no frame of ours.
func guess(head [4]byte) error {
	switch {
	case head[0] == 0x16 && head[1] == 0x03:
		return errTLS
	case string(head[:]) == "GET " || string(head[:]) == "POST" || string(head[:]) == "HEAD" ||
		string(head[:]) == "PUT ":
		return errHTTP
	}
	return errFrame
}

var errFrame = errors.New("frame is not of the stream protocol")

// holding is memory that was taken from a pool.
type holding struct {
	pools []*semaphore.Weighted
	bytes int64
}

func (h holding) release() {
	for _, pool := range h.pools {
		pool.Release(h.bytes)
	}
}

// hold waits for room for n bytes in the pools; nobody has more than a quarter.
//
// What was read waits in one pool, what is to be sent in another: the answer that
// is due next never waits for requests behind it, which wait for the answer.
func (c *conn) hold(ctx context.Context, pool *semaphore.Weighted, n int64) (holding, error) {
	held := holding{bytes: min(n, c.server.opts.Limits.Memory/4)}
	pools := []*semaphore.Weighted{pool}
	switch pool {
	case c.server.frames:
		pools = []*semaphore.Weighted{c.room, pool}
	case c.server.beforeAuth:
		held.bytes = n
	}
	for _, pool := range pools {
		if err := pool.Acquire(ctx, held.bytes); err != nil {
			held.release()
			return holding{}, err
		}
		held.pools = append(held.pools, pool)
	}
	return held, nil
}

// header is what stands before the body of a request.
type header struct {
	key, version int16
	correlation  int32
	client       string
}

// maxClientID is how much of a client's id is kept: it becomes part of member ids.
const maxClientID = 249

var errShortHeader = errors.New("frame ends inside its header")

// readHeader takes the header off a frame, but for the tags that follow it in
// flexible versions.
func readHeader(frame []byte) (h header, body []byte, err error) {
	if len(frame) < 10 {
		return h, nil, errShortHeader
	}
	h.key = int16(binary.BigEndian.Uint16(frame))             //nolint:gosec // the wire's numbers are signed
	h.version = int16(binary.BigEndian.Uint16(frame[2:]))     //nolint:gosec // as above
	h.correlation = int32(binary.BigEndian.Uint32(frame[4:])) //nolint:gosec // as above
	size := int(int16(binary.BigEndian.Uint16(frame[8:])))    //nolint:gosec // as above
	body = frame[10:]
	if size > len(body) {
		return h, nil, errShortHeader
	}
	if size > 0 { // -1 is null
		h.client = string(body[:min(size, maxClientID)])
		body = body[size:]
	}
	return h, body, nil
}

// skipTags takes the tagged fields off a header, of which none is known.
func skipTags(b []byte) ([]byte, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, errShortHeader
	}
	b = b[n:]
	for range count {
		if _, n = binary.Uvarint(b); n <= 0 {
			return nil, errShortHeader
		}
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, errShortHeader
		}
		b = b[n+int(size):] //nolint:gosec // bounded by a length
	}
	return b, nil
}
