// Package errs defines the closed set of error kinds of Freshet's domains.
//
// A domain exports sentinels made with New and wraps them with %w and a verb phrase; it does not
// know status codes. Each surface has one table that maps a kind or sentinel to its wire form
// (Status, {reason}, {error_code, message}, RFC 6749, Kafka error codes). An error without a
// kind is Internal: clients get a fixed text and a request id, and the cause is logged.
//
// errs imports only the standard library and has no locks.
package errs

import (
	"errors"
	"fmt"
)

// Kind classifies an error, so that every surface can map it to its wire form.
type Kind uint8

// The kinds. Internal is the zero value, so that an error without a kind is internal.
const (
	Internal        Kind = iota // a bug or failure of the server; details are only logged
	Invalid                     // the request is malformed or violates a rule
	Unauthenticated             // the caller is not authenticated
	Denied                      // the caller is authenticated but lacks the permission
	NotFound                    // the named object does not exist
	Conflict                    // the request conflicts with the current state
	Precondition                // a precondition of the request does not hold
	TooLarge                    // a body, name or list exceeds its limit
	Unavailable                 // try again later: overload, disk full, shutting down
	Exhausted                   // a quota of the caller's organization is exhausted
	Throttled                   // the rate limit of the caller's organization is exceeded; try again later

	// KindCount is the number of kinds. The tests of a surface range over it to check that
	// the surface maps all of them.
	KindCount
)

var kindNames = [KindCount]string{
	Internal:        "internal",
	Invalid:         "invalid",
	Unauthenticated: "unauthenticated",
	Denied:          "denied",
	NotFound:        "not found",
	Conflict:        "conflict",
	Precondition:    "precondition failed",
	TooLarge:        "too large",
	Unavailable:     "unavailable",
	Exhausted:       "quota exhausted",
	Throttled:       "throttled",
}

// String returns the name of the kind in lower case, for logs.
func (k Kind) String() string {
	if k < KindCount {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Error is an error with a kind. Its text is sent to the client: it should help a person to
// solve the problem, and must not contain secrets.
type Error struct {
	kind  Kind
	text  string
	cause error
}

// New returns a sentinel error of a kind.
func New(kind Kind, text string) *Error {
	return &Error{kind: kind, text: text}
}

// Newf returns an error of a kind. As with fmt.Errorf, %w wraps a cause.
func Newf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{kind: kind, text: err.Error(), cause: err}
}

// Error returns the text for the client.
func (e *Error) Error() string { return e.text }

// Unwrap returns the wrapped error of Newf, or nil.
func (e *Error) Unwrap() error { return e.cause }

// KindOf returns the kind of the outermost Error in err's chain, or Internal.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.kind
	}
	return Internal
}
