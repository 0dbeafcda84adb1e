package web

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// stallShare is the part of the time for a body within which something of it has
// to arrive: whoever sends nothing is let go of sooner than whoever is slow.
const stallShare = 4

// BoundBodies ends requests whose body arrives too slowly, or stops arriving. A
// time limit on the whole connection would do so too, and would end watches and
// waiting consumers with it; this one is lifted when the body has been read.
func BoundBodies(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			body := &boundBody{
				ReadCloser: r.Body, control: *http.NewResponseController(w), end: time.Now().Add(limit),
				stall: limit / stallShare,
			}
			if body.extend() == nil {
				r.Body = body
			}
		}
		next.ServeHTTP(w, r)
	})
}

type boundBody struct {
	io.ReadCloser
	control http.ResponseController
	end     time.Time
	stall   time.Duration
	at      time.Time // the deadline that is set
}

// extend moves the deadline on, now that something has arrived.
func (b *boundBody) extend() error {
	at := time.Now().Add(b.stall)
	if at.After(b.end) {
		at = b.end
	}
	if at.Sub(b.at) < b.stall/8 && !b.at.IsZero() {
		return nil // as good as the one that is set
	}
	b.at = at
	return b.control.SetReadDeadline(at)
}

func (b *boundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		_ = b.control.SetReadDeadline(time.Time{}) // it could be set, so it can be lifted
	case n > 0:
		_ = b.extend() // it could be set before
	}
	return n, err
}
