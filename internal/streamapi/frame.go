package streamapi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Errors that end a connection; the log shows them.
var (
	errFrameSize = errors.New("frame is larger than the limit")
	errTLS       = errors.New("client speaks TLS to the plain listener; use the listener for TLS, or security.protocol=SASL_PLAINTEXT")
	errHTTP      = errors.New("client speaks HTTP to a listener of the stream protocol; use the port for HTTP")
)

// readFrame reads the next frame. held goes back to the server's memory when the
// frame is not needed any more.
func (c *conn) readFrame(ctx context.Context, limit int, patience time.Duration) (frame []byte, held int64, err error) {
	if err := c.socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, 0, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, 0, err
	}
	size := int32(binary.BigEndian.Uint32(head[:])) //nolint:gosec // the wire's numbers are signed
	if size < 0 || int(size) > limit {
		return nil, 0, fmt.Errorf("%w: %w", guess(head), fmt.Errorf("%w: %d bytes, the limit is %d", errFrameSize, size, limit))
	}
	// A large frame gets room when some of it is there: clients that announce
	// much and send nothing take none.
	small := smallFrame
	if c.auth.session == nil {
		small = smallBeforeAuth // strangers have many connections
	}
	frame = make([]byte, min(int(size), small))
	if err := c.readPart(frame); err != nil {
		return nil, 0, err
	}
	if int(size) <= small {
		return frame, 0, nil
	}
	if held, err = c.hold(ctx, int64(size)); err != nil {
		return nil, 0, err
	}
	whole := make([]byte, size)
	for rest := whole[copy(whole, frame):]; len(rest) > 0; {
		part := rest[:min(len(rest), smallFrame)]
		if err := c.readPart(part); err != nil {
			c.release(held)
			return nil, 0, err
		}
		rest = rest[len(part):]
	}
	return whole, held, nil
}

// readPart reads one part of a frame, for which there is as much time as a slow
// writer gets. Strangers have no more than they have to authenticate.
func (c *conn) readPart(part []byte) error {
	if c.auth.session != nil {
		if err := c.socket.SetReadDeadline(time.Now().Add(c.server.opts.Limits.WriteStall)); err != nil {
			return err
		}
	}
	_, err := io.ReadFull(c.in, part)
	return err
}

// guess says what a client speaks whose first bytes are no frame of ours.
func guess(head [4]byte) error {
	switch {
	case head[0] == 0x16 && head[1] == 0x03:
		return errTLS
	case string(head[:]) == "GET " || string(head[:]) == "POST" || string(head[:]) == "HEAD" || string(head[:]) == "PUT ":
		return errHTTP
	}
	return errFrame
}

var errFrame = errors.New("frame is not of the stream protocol")

// hold waits for room for n bytes; a connection has a quarter of it at most.
func (c *conn) hold(ctx context.Context, n int64) (int64, error) {
	n = min(n, c.server.opts.Limits.Memory/4)
	if err := c.room.Acquire(ctx, n); err != nil {
		return 0, err
	}
	if err := c.server.memory.Acquire(ctx, n); err != nil {
		c.room.Release(n)
		return 0, err
	}
	return n, nil
}

// release gives back what hold took.
func (c *conn) release(n int64) {
	if n > 0 {
		c.server.memory.Release(n)
		c.room.Release(n)
	}
}

// header is what stands before the body of a request.
type header struct {
	key, version int16
	correlation  int32
	client       string
}

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
		h.client = string(body[:size])
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
