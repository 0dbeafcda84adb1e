package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"freshet/internal/base/errs"
)

// Limiter bounds what requests may hold at the same time: how many there are,
// and the memory of their bodies, both in fair shares. A nil Limiter bounds
// nothing. Requests enter when it is known whose they are: strangers hold nothing.
type Limiter struct {
	requests *Shares
	memory   *Shares
}

// ErrBusy is the answer to a request that there is no room for; the caller may
// try again in a moment.
var ErrBusy = errs.New(errs.Unavailable, "the server is busy; try again in a moment")

// ErrNoMajority is the answer of a member that is cut off from its group.
var ErrNoMajority = errs.New(errs.Unavailable,
	"this member does not reach a majority of its group and answers nothing; ask another member, or try again shortly")

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
	return &Limiter{requests: NewShares(int64(requests)), memory: NewShares(memory)}
}

// Enter lets a request in, which then has to leave, or returns ErrBusy.
func (l *Limiter) Enter(who Caller) error {
	if l == nil {
		return nil
	}
	if _, ok := l.requests.Acquire(context.Background(), who, 1, 0); !ok {
		return ErrBusy
	}
	return nil
}

// Leave ends what Enter began.
func (l *Limiter) Leave(who Caller) {
	if l != nil {
		l.requests.Release(who, 1)
	}
}

// ReadBody reads the whole body, at most limit bytes of it, once there is room
// for it. held goes back with Release when the body is not needed any more,
// also after an error.
func (l *Limiter) ReadBody(r *http.Request, who Caller, limit int64) (body []byte, held int64, err error) {
	defer func() { RecordOf(r.Context()).charge(len(body)) }()
	n := r.ContentLength
	if n > limit {
		return nil, 0, errs.Newf(errs.TooLarge, "%w: it has %d bytes, the limit is %d", ErrBodyTooLarge, n, limit)
	}
	if n < 0 {
		return l.readUnknown(r, who, limit)
	}
	body, err = readGrowing(r.Body, min(n, smallBody))
	if err != nil || n <= smallBody {
		return body, 0, err
	}
	if held, err = l.hold(r.Context(), who, n); err != nil {
		return nil, held, err
	}
	whole := make([]byte, n)
	if _, err := io.ReadFull(r.Body, whole[copy(whole, body):]); err != nil {
		return nil, held, unreadable(err)
	}
	return whole, held, nil
}

// readUnknown reads a body of which nobody said how long it is.
func (l *Limiter) readUnknown(r *http.Request, who Caller, limit int64) (body []byte, held int64, err error) {
	known, err := io.ReadAll(io.LimitReader(r.Body, min(limit, smallBody)))
	if err != nil {
		return nil, 0, unreadable(err)
	}
	if len(known) == smallBody {
		if held, err = l.hold(r.Context(), who, limit); err != nil {
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

// readGrowing reads n bytes into memory that grows with what comes: whoever only
// says that much will follow gets little.
func readGrowing(from io.Reader, n int64) ([]byte, error) {
	const first, factor = 4 << 10, 16
	body := make([]byte, min(n, first))
	for at := 0; ; {
		if _, err := io.ReadFull(from, body[at:]); err != nil {
			return nil, unreadable(err)
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

// ErrBodyTimeout is the answer to a body that arrives too slowly, or not at all.
var ErrBodyTimeout = errs.New(errs.Invalid, "the request body did not arrive in time")

func unreadable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrBodyTimeout
	}
	return errs.Newf(errs.Invalid, "the request body could not be read: %w", err)
}

// hold takes room for n bytes, all there is when that is less.
func (l *Limiter) hold(ctx context.Context, who Caller, n int64) (int64, error) {
	if l == nil {
		return 0, nil
	}
	held, ok := l.memory.Acquire(ctx, who, n, roomWait)
	if !ok {
		return 0, ErrBusy
	}
	return held, nil
}

// Release gives back what ReadBody held.
func (l *Limiter) Release(who Caller, held int64) {
	if held > 0 {
		l.memory.Release(who, held)
	}
}
