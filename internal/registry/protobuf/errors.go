package protobuf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile/reporter"

	"freshet/internal/base/errs"
)

// The sentinels of this package. The text of an error that wraps ErrInvalid is for the author
// of the schema and becomes the details of error code 42201.
var (
	ErrInvalid    = errs.New(errs.Invalid, "invalid Protobuf schema")
	ErrTooComplex = errs.New(errs.Invalid, "Protobuf schemas are too large to compare")
)

// schemaError wraps ErrInvalid without its text.
type schemaError struct{ text string }

func (e *schemaError) Error() string { return e.text }
func (e *schemaError) Unwrap() error { return ErrInvalid }

func invalidf(format string, args ...any) error {
	return &schemaError{text: fmt.Sprintf(format, args...)}
}

// position is a position in the text, 1-based; the zero value means unknown.
type position struct{ line, col int }

func invalidAt(pos position, text string) error {
	if pos == (position{}) {
		return &schemaError{text: text}
	}
	return invalidf("%d:%d: %s", pos.line, pos.col, text)
}

// maxReported is the maximum number of problems in one error text.
const maxReported = 8

// problems collects the errors of protocompile.
type problems struct {
	list      []string
	positions bool // the positions refer to the author's text
	more      int
	// skip returns true for errors that are not listed. The linker fails on them anyway.
	skip func(text string) bool
}

func (p *problems) handler() *reporter.Handler {
	return reporter.NewHandler(reporter.NewReporter(p.report, nil))
}

func (p *problems) report(err reporter.ErrorWithPos) error {
	text := strings.ReplaceAll(err.Unwrap().Error(), rootPath+":", "")
	if p.skip != nil && p.skip(text) {
		return nil
	}
	if p.positions {
		at := err.GetPosition()
		text = fmt.Sprintf("%d:%d: %s", at.Line, at.Col, text)
	}
	if len(p.list) < maxReported {
		p.list = append(p.list, text)
		return nil
	}
	p.more++
	return errors.New("too many problems")
}

// err returns one error for all problems, or fallback as an error if there are none.
func (p *problems) err(fallback error) error {
	if len(p.list) == 0 {
		return invalidf("%v", fallback)
	}
	text := strings.Join(p.list, "; ")
	if p.more > 0 {
		text += "; and more"
	}
	return &schemaError{text: text}
}

// recovered converts a panic to an error. protocompile panics on some invalid texts, and no
// schema may stop the server.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = invalidf("schema cannot be compiled: %v", r)
	}
}
