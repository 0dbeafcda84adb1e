package protobuf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bufbuild/protocompile/reporter"

	"freshet/internal/base/errs"
)

// Sentinels of this package. The text of an error that wraps ErrInvalid is
// written for the author of the schema and becomes the details of a 42201.
var (
	ErrInvalid    = errs.New(errs.Invalid, "invalid Protobuf schema")
	ErrTooComplex = errs.New(errs.Invalid, "Protobuf schemas too large to compare")
)

// schemaError is an ErrInvalid whose text is the explanation alone.
type schemaError struct{ text string }

func (e *schemaError) Error() string { return e.text }
func (e *schemaError) Unwrap() error { return ErrInvalid }

func invalidf(format string, args ...any) error {
	return &schemaError{text: fmt.Sprintf(format, args...)}
}

// position is a place in the text, 1-based; the zero value means "unknown".
type position struct{ line, col int }

func invalidAt(pos position, text string) error {
	if pos == (position{}) {
		return &schemaError{text: text}
	}
	return invalidf("%d:%d: %s", pos.line, pos.col, text)
}

// maxReported bounds the list of problems in one answer: enough to mend a file
// in few rounds, short enough to read.
const maxReported = 8

// problems collects what protocompile complains about.
type problems struct {
	list      []string
	positions bool // positions are those of the author's own text
	more      int
	// skip tells which complaints do not count. The linker still fails.
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

// err makes one error of the problems, or of fallback if there were none.
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

// recovered turns a panic into an error. protocompile has been seen to panic on
// texts that are wrong in rare ways, and no schema may stop the server.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = invalidf("schema cannot be compiled: %v", r)
	}
}
