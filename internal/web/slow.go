package web

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// BoundBodies ends requests whose body arrives too slowly. A time limit on the
// whole connection would do so too, and would end watches and waiting consumers
// with it; this one is lifted when the body has been read.
func BoundBodies(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			body := &boundBody{ReadCloser: r.Body, control: *http.NewResponseController(w)}
			if body.control.SetReadDeadline(time.Now().Add(limit)) == nil {
				r.Body = body
			}
		}
		next.ServeHTTP(w, r)
	})
}

type boundBody struct {
	io.ReadCloser
	control http.ResponseController
}

func (b *boundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{}) // it could be set, so it can be lifted
	}
	return n, err
}
