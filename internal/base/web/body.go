package web

import (
	"io"
	"net/http"

	"freshet/internal/base/errs"
)

// ErrBodyTooLarge rejects a body that exceeds its limit.
var ErrBodyTooLarge = errs.New(errs.TooLarge, "request body is too large")

// ReadBody reads the whole request body. A body of more than limit bytes is an error.
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	body, _, err := (*Limiter)(nil).ReadBody(r, Caller{}, limit)
	return body, err
}

// maxDiscard is how much of a rejected request's body is read, in bytes.
const maxDiscard = 32 << 20

// Discard reads the rest of the body of a rejected request. Most clients send the whole
// request before they read the response; without Discard they would see a connection
// reset instead of the reason. A client that sends Expect: 100-continue has not sent its
// body yet.
func Discard(r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody || r.Header.Get("Expect") != "" {
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, maxDiscard) // the request is rejected even if reading fails
}
