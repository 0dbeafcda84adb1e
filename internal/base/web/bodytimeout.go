package web

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// stallDivisor divides the time limit of a body: within that part some data must arrive.
// So a client that sends nothing is disconnected sooner than a slow one.
const stallDivisor = 4

// LimitBodyTime fails reading a body that arrives too slowly or stops arriving. A timeout
// of the whole connection would also end watches and waiting consumers; this deadline is
// removed when the body has been read.
func LimitBodyTime(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			body := &timedBody{
				ReadCloser: r.Body, control: *http.NewResponseController(w), end: time.Now().Add(limit),
				stall: limit / stallDivisor,
			}
			if body.extend() == nil {
				r.Body = body
			}
		}
		next.ServeHTTP(w, r)
	})
}

type timedBody struct {
	io.ReadCloser
	control http.ResponseController
	end     time.Time
	stall   time.Duration
	at      time.Time // the current deadline
}

// extend moves the deadline after data has arrived.
func (b *timedBody) extend() error {
	at := time.Now().Add(b.stall)
	if at.After(b.end) {
		at = b.end
	}
	if at.Sub(b.at) < b.stall/8 && !b.at.IsZero() {
		return nil // too small a change for a system call
	}
	b.at = at
	return b.control.SetReadDeadline(at)
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		_ = b.control.SetReadDeadline(time.Time{}) // setting it succeeded before, so removing it does too
	case n > 0:
		_ = b.extend() // setting it succeeded before
	}
	return n, err
}
