package kafkaapi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"freshet/internal/base/fairshare"
	"freshet/internal/identity/access"
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
) (frame []byte, held reservation, err error) {
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
	size := int(int32(binary.BigEndian.Uint32(head[:]))) //nolint:gosec // numbers on the wire are signed
	if size < 0 || size > limit {
		return nil, held, fmt.Errorf("%w: %w", foreignProtocolError(head),
			fmt.Errorf("%w: %d bytes, the limit is %d", errFrameSize, size, limit))
	}
	if c.auth.session == nil {
		frame, err = c.readFrameBeforeAuth(ctx, size, ends)
		return frame, held, err
	}
	// The first bytes take no room. They show which request it is, and that the client sends it.
	frame = make([]byte, min(size, uncountedBytes))
	if err := c.readPart(frame, c.transferDeadline(size)); err != nil {
		return nil, held, err
	}
	if size == len(frame) {
		if held, ok := c.reserveUncounted(size); ok {
			return frame, held, nil
		}
	}
	frame, err = c.readCounted(ctx, frame, size, &held)
	if err != nil {
		held.release()
	}
	return frame, held, err
}

// readFrameBeforeAuth reads a frame of a client that has not authenticated. Many such connections may exist,
// so they share a small memory.
func (c *conn) readFrameBeforeAuth(ctx context.Context, size int, ends time.Time) ([]byte, error) {
	frame := make([]byte, min(size, smallFrameBeforeAuth))
	if err := c.readPart(frame, ends); err != nil || size == len(frame) {
		return frame, err
	}
	if err := c.server.preAuthMemory.Acquire(ctx, int64(size)); err != nil {
		return nil, err
	}
	c.preAuthBytes = int64(size) // held until the request was begun
	whole := make([]byte, size)
	return whole, c.readPart(whole[copy(whole, frame):], ends)
}

// releasePreAuth releases the memory of a frame that was received before authentication.
func (c *conn) releasePreAuth() {
	c.server.preAuthMemory.Release(c.preAuthBytes)
	c.preAuthBytes = 0
}

// readCounted takes room for a frame and reads it. A frame of more than firstStep bytes takes room as its
// bytes arrive, at most twice as much as has arrived.
func (c *conn) readCounted(ctx context.Context, frame []byte, size int, held *reservation) ([]byte, error) {
	pool, weight, err := c.admit(ctx, frame, size)
	if err != nil {
		return nil, err
	}
	// A request behind a response that waits for other clients would hold its room for minutes. The response waits
	// at most as long as the client has asked for.
	c.waiting.Wait()
	if size > firstStep {
		var cancel context.CancelFunc
		ctx, cancel = c.server.untilDraining(ctx)
		defer cancel()
	}
	caller := c.caller(c.auth.session)
	charge := func(n int) int64 { return min(int64(n*weight), c.server.room.maxHeld()) }
	if size > firstStep {
		release, err := c.server.room.claim(ctx, caller, charge(size))
		if err != nil {
			return nil, err
		}
		defer release()
	}
	step := min(size, firstStep)
	if size > firstStep {
		*held, err = reserve(ctx, pool, caller, charge(step), fairshare.NoTimeout)
	} else {
		*held, err = c.server.reserveFrame(ctx, pool, caller, charge(step))
	}
	if err != nil {
		return nil, err
	}
	ends := c.transferDeadline(size) // the wait for room does not count against the client
	for received := len(frame); ; step = min(size, 2*step) {
		if step > firstStep {
			waited := time.Now()
			if err := held.extend(ctx, charge(step), c.server.opts.Limits.StallTimeout); err != nil {
				return nil, err
			}
			ends = ends.Add(time.Since(waited))
		}
		if step > len(frame) {
			frame = append(make([]byte, 0, step), frame...)[:step]
		}
		for received < step {
			part := frame[received:min(received+smallFrame, step)]
			if err := c.readPart(part, ends); err != nil {
				return nil, err
			}
			received += len(part)
		}
		if step == size {
			return frame, nil
		}
	}
}

// admit returns the pool from which a large frame takes its room, and its room in multiples of its size. frame has
// the first bytes of the frame: they show whether the client may send such a request at all.
func (c *conn) admit(ctx context.Context, frame []byte, size int) (*fairshare.Semaphore, int, error) {
	if c.auth.raw {
		return c.server.room.outsiders, 1, checkFrameSize("credentials", size, maxFrameBeforeAuth)
	}
	h, _, err := readHeader(frame)
	if err != nil {
		return nil, 0, err
	}
	api, known := c.server.apis[h.key]
	if !known {
		return nil, 0, fmt.Errorf("client requests API %d, which is not supported", h.key)
	}
	if err := c.auth.checkAllowed(ctx, c, &h); err != nil {
		return nil, 0, err
	}
	weight := 1
	wanted := []access.Permission{permitProduce}
	if h.key != keyProduce {
		weight, wanted = controlWeight, anyPermission
		if err := checkFrameSize(api.name, size, maxControlFrame); err != nil {
			return nil, 0, err
		}
	}
	asks := &call{conn: c, session: c.auth.session, header: h}
	if asks.hasWithinCluster(wanted...) {
		return c.server.room.main, weight, nil
	}
	return c.server.room.outsiders, weight, checkFrameSize(api.name+" without a permission on the cluster", size,
		maxOutsiderFrame)
}

func checkFrameSize(of string, size, limit int) error {
	if size > limit {
		return fmt.Errorf("%w: %d bytes of %s, the limit is %d", errFrameSize, size, of, limit)
	}
	return nil
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
