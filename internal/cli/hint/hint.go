// Package hint attaches a hint to an error: one line of advice for the user.
// Package cli prints it below the error.
package hint

import (
	"errors"
	"fmt"
)

type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }
func (e *hinted) Hint() string  { return e.hint }

// Add attaches a hint to an error. It takes precedence over hints that the error already
// has.
func Add(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// Hinter is an error with a hint.
type Hinter interface {
	error
	Hint() string
}

// Of returns the outermost hint of an error, or "" if it has none.
func Of(err error) string {
	var h Hinter
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
