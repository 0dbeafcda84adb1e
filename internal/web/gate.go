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

// Gate bounds what requests may hold at the same time: how many there are, and
// the memory of their bodies. A nil Gate bounds nothing.
type Gate struct {
	most   int64
	inside atomic.Int64

	memory int64
	free   *semaphore.Weighted
}

// ErrBusy is the answer to a request that there is no room for; the caller may
// try again in a moment.
var ErrBusy = errs.New(errs.Unavailable, "the server is busy, try again")

const (
	// smallBody is not counted: as many of these as there are requests do no
	// harm.
	smallBody = 64 << 10
	// roomWait is how long a request waits for the memory of its body. The
	// client notices no more than that nobody reads yet.
	roomWait = 10 * time.Second
)

// NewGate makes a gate for so many requests with so many bytes of bodies.
func NewGate(requests int, memory int64) *Gate {
	return &Gate{most: int64(requests), memory: memory, free: semaphore.NewWeighted(memory)}
}

// Enter lets a request in, which then has to leave, or returns ErrBusy.
func (g *Gate) Enter() error {
	if g != nil && g.inside.Add(1) > g.most {
		g.inside.Add(-1)
		return ErrBusy
	}
	return nil
}

// Leave ends what Enter began.
func (g *Gate) Leave() {
	if g != nil {
		g.inside.Add(-1)
	}
}

// ReadBody reads the whole body, at most limit bytes of it, once there is room
// for it. held goes back with Release when the body is not needed any more,
// also after an error.
func (g *Gate) ReadBody(r *http.Request, limit int64) (body []byte, held int64, err error) {
	n := r.ContentLength
	switch {
	case n > limit:
		return nil, 0, errs.Newf(errs.TooLarge, "%w: %d bytes, limit is %d", ErrBodyTooLarge, n, limit)
	case n > smallBody:
		if held, err = g.hold(r.Context(), n); err == nil {
			body, err = readKnown(r)
		}
		return body, held, err
	case n >= 0:
		body, err = readKnown(r)
		return body, 0, err
	}
	known, err := io.ReadAll(io.LimitReader(r.Body, min(limit, smallBody)))
	if err != nil {
		return nil, 0, unreadable(err)
	}
	if len(known) == smallBody {
		if held, err = g.hold(r.Context(), limit); err != nil {
			return nil, held, err
		}
	}
	body, err = readMore(r, known, limit)
	return body, held, err
}

// hold takes room for n bytes, all there is when that is less.
func (g *Gate) hold(ctx context.Context, n int64) (int64, error) {
	if g == nil {
		return 0, nil
	}
	n = min(n, g.memory)
	if g.free.TryAcquire(n) {
		return n, nil
	}
	ctx, cancel := context.WithTimeout(ctx, roomWait)
	defer cancel()
	if g.free.Acquire(ctx, n) != nil {
		return 0, ErrBusy
	}
	return n, nil
}

// Release gives back what ReadBody held.
func (g *Gate) Release(held int64) {
	if held > 0 {
		g.free.Release(held)
	}
}
