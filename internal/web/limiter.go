package web

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"freshet/internal/errs"
)

// Limiter bounds what requests may hold at the same time: how many there are,
// and the memory of their bodies. A nil Limiter bounds nothing.
type Limiter struct {
	most     int64
	inFlight atomic.Int64

	memory int64
	free   *semaphore.Weighted
}

// ErrBusy is the answer to a request that there is no room for; the caller may
// try again in a moment.
var ErrBusy = errs.New(errs.Unavailable, "the server is busy; try again in a moment")

// ErrStarting is the answer to a request that came before the server was ready.
var ErrStarting = errs.New(errs.Unavailable, "the server is starting; try again in a moment")

const (
	// smallBody is not counted: as many of these as there are requests do no
	// harm. It is also what a larger one has to show before it gets room, or
	// clients that announce much and send nothing would take all there is.
	smallBody = 64 << 10
	// roomWait is how long a request waits for the memory of its body. The
	// client notices no more than that nobody reads yet.
	roomWait = 20 * time.Second
)

// NewLimiter makes a limiter for so many requests with so many bytes of bodies.
func NewLimiter(requests int, memory int64) *Limiter {
	return &Limiter{most: int64(requests), memory: memory, free: semaphore.NewWeighted(memory)}
}

// Enter lets a request in, which then has to leave, or returns ErrBusy.
func (l *Limiter) Enter() error {
	if l != nil && l.inFlight.Add(1) > l.most {
		l.inFlight.Add(-1)
		return ErrBusy
	}
	return nil
}

// Leave ends what Enter began.
func (l *Limiter) Leave() {
	if l != nil {
		l.inFlight.Add(-1)
	}
}

// ReadBody reads the whole body, at most limit bytes of it, once there is room
// for it. held goes back with Release when the body is not needed any more,
// also after an error.
func (l *Limiter) ReadBody(r *http.Request, limit int64) (body []byte, held int64, err error) {
	defer func() { RecordOf(r.Context()).charge(len(body)) }()
	n := r.ContentLength
	if n > limit {
		return nil, 0, errs.Newf(errs.TooLarge, "%w: it has %d bytes, the limit is %d", ErrBodyTooLarge, n, limit)
	}
	if n < 0 {
		return l.readUnknown(r, limit)
	}
	body = make([]byte, min(n, smallBody))
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, 0, unreadable(err)
	}
	if n <= smallBody {
		return body, 0, nil
	}
	if held, err = l.hold(r.Context(), n); err != nil {
		return nil, held, err
	}
	whole := make([]byte, n)
	if _, err := io.ReadFull(r.Body, whole[copy(whole, body):]); err != nil {
		return nil, held, unreadable(err)
	}
	return whole, held, nil
}

// readUnknown reads a body of which nobody said how long it is.
func (l *Limiter) readUnknown(r *http.Request, limit int64) (body []byte, held int64, err error) {
	known, err := io.ReadAll(io.LimitReader(r.Body, min(limit, smallBody)))
	if err != nil {
		return nil, 0, unreadable(err)
	}
	if len(known) == smallBody {
		if held, err = l.hold(r.Context(), limit); err != nil {
			return nil, held, err
		}
	}
	room := limit - int64(len(known))
	more, err := io.ReadAll(io.LimitReader(r.Body, room+1))
	if err != nil {
		return nil, held, unreadable(err)
	}
	if int64(len(more)) > room {
		return nil, held, errs.Newf(errs.TooLarge, "%w: the limit is %d bytes", ErrBodyTooLarge, limit)
	}
	return append(known, more...), held, nil
}

func unreadable(err error) error {
	return errs.Newf(errs.Invalid, "the request body could not be read: %w", err)
}

// hold takes room for n bytes, all there is when that is less.
func (l *Limiter) hold(ctx context.Context, n int64) (int64, error) {
	if l == nil {
		return 0, nil
	}
	n = min(n, l.memory)
	if l.free.TryAcquire(n) {
		return n, nil
	}
	ctx, cancel := context.WithTimeout(ctx, roomWait)
	defer cancel()
	if l.free.Acquire(ctx, n) != nil {
		return 0, ErrBusy
	}
	return n, nil
}

// Release gives back what ReadBody held.
func (l *Limiter) Release(held int64) {
	if held > 0 {
		l.free.Release(held)
	}
}
