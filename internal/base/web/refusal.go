package web

import (
	"fmt"
	"net/http"

	"freshet/internal/base/errs"
)

// Refusal is why a request is rejected before a surface handles it: it is malformed
// HTTP, or its header is too large. The surface of its path responds with this status,
// in the surface's own form of errors.
type Refusal struct {
	Status int
	Text   string
}

// Error implements error; clients see the text.
func (r *Refusal) Error() string { return r.Text }

// Unwrap returns an error of kind Invalid.
func (r *Refusal) Unwrap() error { return errRefused }

var errRefused = errs.New(errs.Invalid, "request is not valid HTTP")

// Refused returns the refusal of a request, or nil. Surfaces check it first.
func Refused(r *http.Request) *Refusal { return RecordOf(r.Context()).Refusal }

// Refuse makes next reject every request. It must be inside of Middleware, which creates
// the record.
func Refuse(next http.Handler, refusal *Refusal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		RecordOf(r.Context()).Refusal = refusal
		next.ServeHTTP(w, r)
	})
}

// LimitHeaders rejects requests whose header is larger than limit. net/http has a limit
// too, but with an error in a form of its own, so that limit should be larger.
func LimitHeaders(next http.Handler, limit int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if size := headerSize(r); size > limit {
			RecordOf(r.Context()).Refusal = &Refusal{
				Status: http.StatusRequestHeaderFieldsTooLarge,
				Text:   fmt.Sprintf("request header is too large: %d bytes, the limit is %d", size, limit),
			}
		}
		next.ServeHTTP(w, r)
	})
}

// headerSize returns the size of a header on the wire, including line ends.
func headerSize(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value) + len(": \r\n")
		}
	}
	return n
}
