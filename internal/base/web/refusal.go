package web

import (
	"fmt"
	"net/http"

	"freshet/internal/base/errs"
)

// Refusal is a request that no surface should look at: it is malformed as HTTP,
// or its header is too large. The surface that its path belongs to answers it in
// its own form, with this status.
type Refusal struct {
	Status int
	Text   string
}

// Error implements error; the text is for the caller.
func (r *Refusal) Error() string { return r.Text }

// Unwrap gives it a kind.
func (r *Refusal) Unwrap() error { return errRefused }

var errRefused = errs.New(errs.Invalid, "the request is not valid HTTP")

// Refused returns the refusal of a request, or nil. Surfaces ask it first.
func Refused(r *http.Request) *Refusal { return RecordOf(r.Context()).Refusal }

// Refuse makes next answer every request with a refusal. It belongs inside of
// Middleware, which makes the record.
func Refuse(next http.Handler, refusal *Refusal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		RecordOf(r.Context()).Refusal = refusal
		next.ServeHTTP(w, r)
	})
}

// BoundHeaders refuses requests whose header is larger than limit. The HTTP
// library has a bound too, which it answers in a form of its own; it should be
// the wider one.
func BoundHeaders(next http.Handler, limit int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if size := headerSize(r); size > limit {
			RecordOf(r.Context()).Refusal = &Refusal{
				Status: http.StatusRequestHeaderFieldsTooLarge,
				Text: fmt.Sprintf("the header of the request is too large: it has %d bytes, the limit is %d", size,
					limit),
			}
		}
		next.ServeHTTP(w, r)
	})
}

// headerSize is what a header takes on the wire, line ends included.
func headerSize(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value) + len(": \r\n")
		}
	}
	return n
}
