package web

import (
	"io"
	"net/http"

	"freshet/internal/base/errs"
)

// ErrBodyTooLarge is the answer to a body over its limit.
var ErrBodyTooLarge = errs.New(errs.TooLarge, "the request body is too large")

// ReadBody reads the whole request body, at most limit bytes of it.
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	body, _, err := (*Limiter)(nil).ReadBody(r, Caller{}, limit)
	return body, err
}

// maxDiscard is where patience with a refused request ends.
const maxDiscard = 32 << 20

// Discard takes in what is left of the body of a request that is refused. Most
// clients write all of a request before they read the answer, and would find
// their connection reset instead of the reason. Those who ask first whether to
// go on have sent nothing yet.
func Discard(r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody || r.Header.Get("Expect") != "" {
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, maxDiscard) // whatever comes of it, the request is refused
}
