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

// Errors that end a connection. They are logged.
var (
	errFrameSize = errors.New("frame is larger than the limit")
	errTLS       = errors.New(
		"client uses TLS on the plain-text listener; use the TLS listener or set security.protocol=SASL_PLAINTEXT")
	errHTTP = errors.New("client sends HTTP to a Kafka listener; use the HTTP port")
)

// readFrame reads the next frame. The caller releases held when it no longer needs the frame.
func (c *conn) readFrame(ctx context.Context, limit int,
	timeout time.Duration,
) (frame []byte, held memoryReservation, err error) {
	ends, slack := time.Now().Add(timeout), time.Duration(0)
	if c.auth.session != nil {
		slack = timeout / 20
	}
	if err := c.setReadDeadline(ends, slack); err != nil {
		return nil, held, err
	}
	if c.closing.Load() { // setReadDeadline may have replaced the deadline of drain
		return nil, held, io.EOF
	}
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, held, err
	}
	size := int32(binary.BigEndian.Uint32(head[:])) //nolint:gosec // numbers on the wire are signed
	if size < 0 || int(size) > limit {
		return nil, held, fmt.Errorf("%w: %w", foreignProtocolError(head),
			fmt.Errorf("%w: %d bytes, the limit is %d", errFrameSize, size, limit))
	}
	// A large frame reserves memory only after its first bytes have arrived, so that clients that
	// announce a large frame and send nothing reserve none.
	small, pool := smallFrame, c.server.frameMemory
	if c.auth.session == nil {
		small, pool = smallFrameBeforeAuth, c.server.preAuthMemory // many such connections may exist
	} else {
		ends = c.transferDeadline(int(size))
	}
	frame = make([]byte, min(int(size), small))
	if err := c.readPart(frame, ends); err != nil {
		return nil, held, err
	}
	if int(size) <= small {
		return frame, held, nil
	}
	if held, err = c.reserveMemory(ctx, pool, int64(size)); err != nil {
		return nil, held, err
	}
	if c.auth.session != nil {
		ends = c.transferDeadline(int(size)) // the wait for memory does not count against the client
	}
	whole := make([]byte, size)
	for rest := whole[copy(whole, frame):]; len(rest) > 0; {
		part := rest[:min(len(rest), smallFrame)]
		if err := c.readPart(part, ends); err != nil {
			held.release()
			return nil, memoryReservation{}, err
		}
		rest = rest[len(part):]
	}
	return whole, held, nil
}

// transferDeadline returns the deadline for the transfer of so many bytes. Without it a client that makes
// minimal progress could hold memory for hours.
func (c *conn) transferDeadline(bytes int) time.Time {
	return time.Now().Add(c.server.opts.Limits.StallTimeout + time.Duration(bytes)*time.Second/minTransferRate)
}

// readPart reads one part of a frame. Its deadline is StallTimeout from now, but not after ends. Before
// authentication the caller passes the end of the authentication timeout as ends.
func (c *conn) readPart(part []byte, ends time.Time) error {
	if c.in.Buffered() < len(part) {
		deadline := time.Now().Add(c.server.opts.Limits.StallTimeout)
		if ends.Before(deadline) {
			deadline = ends
		}
		if err := c.setReadDeadline(deadline, 0); err != nil {
			return err
		}
	}
	_, err := io.ReadFull(c.in, part)
	return err
}

// setReadDeadline sets the read deadline of the socket unless the current one is close enough.
func (c *conn) setReadDeadline(deadline time.Time, slack time.Duration) error {
	if !updateDeadline(&c.readDeadline, deadline, slack) {
		return nil
	}
	return c.socket.SetReadDeadline(c.readDeadline)
}

// foreignProtocolError returns an error that names the protocol of a client whose first bytes are not a Kafka
// frame.
func foreignProtocolError(head [4]byte) error {
	switch {
	case head[0] == 0x16 && head[1] == 0x03:
		return errTLS
	case string(head[:]) == "GET " || string(head[:]) == "POST" || string(head[:]) == "HEAD" ||
		string(head[:]) == "PUT ":
		return errHTTP
	}
	return errFrame
}

var errFrame = errors.New("frame is not a Kafka request")

// memoryReservation is memory that was acquired from semaphores.
type memoryReservation struct {
	semaphores []*semaphore.Weighted
	bytes      int64
}

func (h memoryReservation) release() {
	for _, pool := range h.semaphores {
		pool.Release(h.bytes)
	}
}

// reserveMemory acquires n bytes, at most a quarter of the memory, from a semaphore; for frames also from
// the connection's own.
//
// Frames and responses have separate semaphores: the response that is due next never waits for the
// memory of later requests, which themselves wait for that response.
func (c *conn) reserveMemory(ctx context.Context, pool *semaphore.Weighted, n int64) (memoryReservation, error) {
	held := memoryReservation{bytes: min(n, c.server.opts.Limits.Memory/4)}
	pools := []*semaphore.Weighted{pool}
	switch pool {
	case c.server.frameMemory:
		pools = []*semaphore.Weighted{c.frameMemory, pool}
	case c.server.preAuthMemory:
		held.bytes = n
	}
	for _, pool := range pools {
		if err := pool.Acquire(ctx, held.bytes); err != nil {
			held.release()
			return memoryReservation{}, err
		}
		held.semaphores = append(held.semaphores, pool)
	}
	return held, nil
}

// header is the header of a request.
type header struct {
	key, version int16
	correlation  int32
	client       string
}

// maxClientID bounds the client id that is kept, because it becomes part of member ids.
const maxClientID = 249

var errShortHeader = errors.New("frame ends inside its header")

// readHeader decodes the header of a frame, without the tagged fields that follow it in flexible
// versions.
func readHeader(frame []byte) (h header, body []byte, err error) {
	if len(frame) < 10 {
		return h, nil, errShortHeader
	}
	h.key = int16(binary.BigEndian.Uint16(frame))             //nolint:gosec // numbers on the wire are signed
	h.version = int16(binary.BigEndian.Uint16(frame[2:]))     //nolint:gosec // numbers on the wire are signed
	h.correlation = int32(binary.BigEndian.Uint32(frame[4:])) //nolint:gosec // numbers on the wire are signed
	size := int(int16(binary.BigEndian.Uint16(frame[8:])))    //nolint:gosec // numbers on the wire are signed
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

// skipTags skips the tagged fields of a header, none of which is known.
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
