package filter

import (
	"context"
	"errors"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"freshet/internal/base/errs"
)

// The limits of a contract.
const (
	MaxContract = 2048 // bytes of the text

	maxFixed  = 20_000 // operations for a message, however small it is
	maxReads  = 8      // values that are shown for a message that breaks it
	maxShown  = 200    // characters of one value
	fixedWork = 32     // work of one operation

	textPerOperation = 64 // bytes of a text times the size of the regular expressions

	// MaxWork bounds the work for all messages of one call. It is far more than the limits for one
	// message allow.
	MaxWork = int64(1) << 30
)

// Contract is a compiled expression that every message of a topic must fulfil. It is immutable and safe
// for concurrent use.
type Contract struct {
	filter *Filter
	fixed  int
	reads  []string
	// readers are the programs of reads. They are compiled for the first message that breaks the contract.
	readers func() []cel.Program
}

// CompileContract compiles the expression of a contract. In addition to the errors of Compile it rejects
// expressions that read what a message does not have before it is stored, or that are costly for a message
// of any size.
func CompileContract(text string) (*Contract, error) {
	if len(text) > MaxContract {
		return nil, errs.Newf(errs.Invalid, "%w: it has %d bytes, at most %d are allowed", ErrExpression, len(text),
			MaxContract)
	}
	f, checked, err := compileFilter(text)
	if err != nil {
		return nil, err
	}
	root := checked.NativeRep().Expr()
	if name := unknownVariable(root); name != "" {
		return nil, errs.Newf(errs.Invalid, "%w: %s is not known before a message is stored", ErrExpression, name)
	}
	c := &Contract{filter: f, fixed: operations(root, f.regexps), reads: readsOf(checked)}
	if c.fixed > maxFixed {
		return nil, errs.Newf(errs.Invalid, "%w: it takes up to %d operations for every message, at most %d are "+
			"allowed; use shorter lists in all, exists, map and filter", ErrExpression, c.fixed, maxFixed)
	}
	c.readers = sync.OnceValue(func() []cel.Program { return programsOf(c.reads) })
	return c, nil
}

// programsOf compiles expressions that read one value. A program is nil if its text cannot be compiled.
func programsOf(texts []string) []cel.Program {
	programs := make([]cel.Program, len(texts))
	env, err := environment()
	if err != nil {
		return programs
	}
	for i, text := range texts {
		part, issues := env.Compile(text)
		if issues.Err() != nil {
			continue
		}
		if program, err := env.Program(part); err == nil {
			programs[i] = program
		}
	}
	return programs
}

// unknownVariable returns a variable in an expression that a message does not have before it is stored.
func unknownVariable(root ast.Expr) (name string) {
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind && (e.AsIdent() == varPartition || e.AsIdent() == varOffset) {
			name = e.AsIdent()
		}
	}))
	return name
}

// operations returns how many operations an expression takes for a message at most, without those that the
// message's own lists and objects cause. The turns of a loop over lists in the text are counted, and a text
// counts by its length, because matches reads all of it.
func operations(root ast.Expr, regexps int) (n int) {
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		n += 1 + textOperations(e, regexps)
		if e.Kind() != ast.ComprehensionKind {
			return
		}
		turns, body := 0, 0
		ast.PostOrderVisit(e.AsComprehension().IterRange(), ast.NewExprVisitor(func(part ast.Expr) {
			switch part.Kind() {
			case ast.ListKind:
				turns += part.AsList().Size()
			case ast.MapKind:
				turns += part.AsMap().Size()
			}
		}))
		count := ast.NewExprVisitor(func(part ast.Expr) { body += 1 + textOperations(part, regexps) })
		ast.PostOrderVisit(e.AsComprehension().LoopCondition(), count)
		ast.PostOrderVisit(e.AsComprehension().LoopStep(), count)
		n += turns * body
	}))
	return n
}

// textOperations returns the operations for reading a literal text.
func textOperations(e ast.Expr, regexps int) int {
	if e.Kind() != ast.LiteralKind {
		return 0
	}
	text, _ := e.AsLiteral().(types.String)
	return len(text) * (1 + regexps) / textPerOperation
}

// Checker checks messages of one topic by a contract. It belongs to one goroutine.
type Checker struct {
	contract *Contract
	eval     *Evaluator
	work     int64
}

// Checker returns a checker for messages whose schemas are found in schemas.
func (c *Contract) Checker(ctx context.Context, schemas Schemas) *Checker {
	return &Checker{contract: c, eval: c.filter.Evaluator(ctx, schemas)}
}

// Read is a value that an expression reads of a message.
type Read struct {
	Name  string // as the expression reads it: payload.total
	Value string // at most maxShown characters
}

// Breach describes how a message breaks a contract.
type Breach struct {
	Reason error // why the expression failed; nil if it is false
	Reads  []Read
}

// Check returns nil if a message fulfils the contract. The error is of the server, not of the message: its
// schema cannot be read now.
func (c *Checker) Check(m *Message) (*Breach, error) {
	kept, err := c.eval.Match(m)
	c.work += int64(fixedWork*c.contract.fixed) + c.spent(m)
	if kept && err == nil {
		return nil, nil
	}
	if temporary(err) {
		return nil, err
	}
	return &Breach{Reason: err, Reads: c.read(m)}, nil
}

func temporary(err error) bool {
	return errs.KindOf(err) == errs.Unavailable || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// Work returns the work for all messages that were checked, roughly in bytes that were decoded.
func (c *Checker) Work() int64 { return c.work }

// spent returns the work of the last evaluation that depends on its message.
func (c *Checker) spent(m *Message) int64 {
	f := c.contract.filter
	whole := newBudget(m.weight(), f)
	return int64(whole.steps-c.eval.budget.steps)*int64(1+f.regexps) +
		int64(whole.elements-c.eval.budget.elements)*int64(2*len(f.text)*(1+f.regexps))
}

// read returns the values that the expression reads of a message, without those that cannot be read.
func (c *Checker) read(m *Message) []Read {
	reads := make([]Read, 0, len(c.contract.reads))
	for i, program := range c.contract.readers() {
		if program == nil {
			continue
		}
		c.eval.m, c.eval.budget = m, newBudget(m.weight(), c.contract.filter)
		out, _, err := program.Eval(variables{c.eval})
		c.work += c.spent(m)
		if err != nil {
			continue // the expression did not read it, or its error is the reason
		}
		reads = append(reads, Read{c.contract.reads[i], shown(out)})
	}
	return reads
}
