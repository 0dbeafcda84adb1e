package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/fairshare"
)

// Caller is a principal of an organization, among which a Limiter divides its units.
type Caller = fairshare.Caller

// Limiter limits the number of concurrent requests and the memory of their bodies, both
// in fair shares. A nil Limiter has no limits. A request enters after its caller was
// authenticated, so that unauthenticated callers hold nothing.
type Limiter struct {
	requests *fairshare.Semaphore
	memory   *fairshare.Semaphore
}

// ErrBusy rejects a request that exceeds the limits; the client may retry.
var ErrBusy = errs.New(errs.Unavailable, "server is busy; retry in a moment")

// ErrNoMajority rejects a request to a member that is cut off from its ensemble.
var ErrNoMajority = errs.New(errs.Unavailable,
	"member does not reach a majority of its ensemble and rejects all requests; use another member, or retry later")

// ErrStarting rejects a request that came before the server was ready.
var ErrStarting = errs.New(errs.Unavailable, "server is starting; retry in a moment")

const (
	// smallBody is the size up to which a body is not counted: the limit on requests
	// bounds their sum. A larger body must send this much before it reserves memory.
	// Otherwise clients that announce a large body and send nothing could reserve all
	// memory.
	smallBody = 64 << 10
	// memoryTimeout is how long a request waits for the memory of its body. Until then the
	// server does not read the rest of the body.
	memoryTimeout = 20 * time.Second
)

// NewLimiter returns a limiter for this many concurrent requests and bytes of bodies.
func NewLimiter(requests int, memory int64) *Limiter {
	return &Limiter{
		requests: fairshare.New(int64(requests), fairshare.Options{}),
		memory:   fairshare.New(memory, fairshare.Options{}),
	}
}

// Enter admits a request, which must call Leave at its end, or returns ErrBusy.
func (l *Limiter) Enter(caller Caller) error {
	if l == nil {
		return nil
	}
	if _, err := l.requests.Acquire(context.Background(), caller, 1, 0); err != nil {
		return ErrBusy
	}
	return nil
}

// Leave ends a request that Enter admitted.
func (l *Limiter) Leave(caller Caller) {
	if l != nil {
		l.requests.Release(caller, 1)
	}
}

// ReadBody reads the whole body once there is memory for it. A body of more than limit
// bytes is an error. held is the reserved memory: the caller must Release it when it no
// longer needs the body, also after an error.
func (l *Limiter) ReadBody(r *http.Request, caller Caller, limit int64) (body []byte, reserved int64, err error) {
	defer func() { RecordOf(r.Context()).charge(len(body)) }()
	n := r.ContentLength
	if n > limit {
		return nil, 0, errs.Newf(errs.TooLarge, "%w: %d bytes, the limit is %d", ErrBodyTooLarge, n, limit)
	}
	if n < 0 {
		return l.readUnknown(r, caller, limit)
	}
	body, err = readGrowing(r.Body, min(n, smallBody))
	if err != nil || n <= smallBody {
		return body, 0, err
	}
	if reserved, err = l.reserveMemory(r.Context(), caller, n); err != nil {
		return nil, reserved, err
	}
	whole := make([]byte, n)
	if _, err := io.ReadFull(r.Body, whole[copy(whole, body):]); err != nil {
		return nil, reserved, bodyReadError(err)
	}
	return whole, reserved, nil
}

// readUnknown reads a body without a Content-Length.
func (l *Limiter) readUnknown(r *http.Request, caller Caller, limit int64) (body []byte, reserved int64, err error) {
	known, err := io.ReadAll(io.LimitReader(r.Body, min(limit, smallBody)))
	if err != nil {
		return nil, 0, bodyReadError(err)
	}
	if len(known) == smallBody {
		if reserved, err = l.reserveMemory(r.Context(), caller, limit); err != nil {
			return nil, reserved, err
		}
	}
	remaining := limit - int64(len(known))
	more, err := io.ReadAll(io.LimitReader(r.Body, remaining+1))
	if err != nil {
		return nil, reserved, bodyReadError(err)
	}
	if int64(len(more)) > remaining {
		return nil, reserved, errs.Newf(errs.TooLarge, "%w: the limit is %d bytes", ErrBodyTooLarge, limit)
	}
	return append(known, more...), reserved, nil
}

// readGrowing reads n bytes into a buffer that grows with the received data, so that a
// client that only announces a large body does not allocate it.
func readGrowing(from io.Reader, n int64) ([]byte, error) {
	const first, factor = 4 << 10, 16
	body := make([]byte, min(n, first))
	for at := 0; ; {
		if _, err := io.ReadFull(from, body[at:]); err != nil {
			return nil, bodyReadError(err)
		}
		if int64(len(body)) == n {
			return body, nil
		}
		at = len(body)
		more := make([]byte, min(n, int64(at)*factor))
		copy(more, body)
		body = more
	}
}

// ErrBodyTimeout rejects a body that arrives too slowly or not at all.
var ErrBodyTimeout = errs.New(errs.Invalid, "request body did not arrive in time")

func bodyReadError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrBodyTimeout
	}
	return errs.Newf(errs.Invalid, "reading the request body: %w", err)
}

// reserveMemory reserves memory for n bytes, or all memory if that is less.
func (l *Limiter) reserveMemory(ctx context.Context, caller Caller, n int64) (int64, error) {
	if l == nil {
		return 0, nil
	}
	reserved, err := l.memory.Acquire(ctx, caller, n, memoryTimeout)
	if err != nil {
		return 0, ErrBusy
	}
	return reserved, nil
}

// Release returns the memory that ReadBody has reserved.
func (l *Limiter) Release(caller Caller, reserved int64) {
	if reserved > 0 {
		l.memory.Release(caller, reserved)
	}
}
