// Package errs is the closed set of error kinds that Freshet's domains speak.
//
// A domain exports sentinels made with New, wraps them with %w and a verb
// phrase, and never thinks about status codes. Each HTTP surface owns one
// table from kind or sentinel to its wire form (Status, {reason},
// {error_code, message}, RFC 6749). An error of no known kind is Internal:
// the outside sees a fixed text and a request id, the cause goes to the log.
//
// errs imports the standard library only.
package errs

import (
	"errors"
	"fmt"
)

// Kind says what sort of failure an error is, in words every surface can map.
type Kind uint8

// The kinds. Internal is the zero value: what nobody classified is internal.
const (
	Internal        Kind = iota // a fault of ours; details go to the log only
	Invalid                     // the request is malformed or breaks a rule
	Unauthenticated             // we do not know who is calling
	Denied                      // we know who is calling, and they may not
	NotFound                    // the thing named does not exist
	Conflict                    // the request fights with the present state
	Precondition                // the state the caller demanded does not hold
	TooLarge                    // a body, name or list is over its limit
	Unavailable                 // try again later: overload, disk full, shutting down
	Exhausted                   // the caller's organization has no room left: a quota is used up
	Throttled                   // the caller's organization calls too fast: try again a little later

	// KindCount is how many kinds there are: a surface ranges over it to test
	// that it maps them all.
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

// String returns the kind in lower-case words, for logs.
func (k Kind) String() string {
	if k < KindCount {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Error is an error with a kind. Its text is meant for the caller: write it so
// that a person can act on it, and put nothing secret in it.
type Error struct {
	kind  Kind
	text  string
	cause error
}

// New makes a sentinel of the given kind.
func New(kind Kind, text string) *Error {
	return &Error{kind: kind, text: text}
}

// Newf makes an error of the given kind. As with fmt.Errorf, %w keeps a cause.
func Newf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{kind: kind, text: err.Error(), cause: err}
}

// Error returns the text for the caller.
func (e *Error) Error() string { return e.text }

// Unwrap returns what Newf wrapped, if anything.
func (e *Error) Unwrap() error { return e.cause }

// KindOf returns the kind of the outermost Error in err's chain, or Internal.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.kind
	}
	return Internal
}
