// Package hint adds to an error the one line that says what to do about it. The
// command line prints it under the error.
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

// Add gives an error a hint, which wins over those that it has.
func Add(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// Hinter is an error that says what to do about it.
type Hinter interface {
	error
	Hint() string
}

// Of is the outermost hint of an error, "" when there is none.
func Of(err error) string {
	var h Hinter
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
