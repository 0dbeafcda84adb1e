package filter

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"

	"freshet/internal/base/errs"
)

// The limits of an expression.
const (
	MaxExpression = 4096 // bytes of the text

	maxNesting = 64   // nesting of the expression
	maxLoops   = 1    // nesting of all, exists, map and filter
	maxRegexp  = 1000 // instructions of all regular expressions, roughly
	maxSums    = 8    // uses of +, which can lengthen strings and lists
)

// ErrExpression means that a text is not a valid expression.
var ErrExpression = errs.New(errs.Invalid, "text is not a valid expression")

// Names of the variables.
const (
	varKey         = "key"
	varProperties  = "properties"
	varHeaders     = "headers"
	varPublishTime = "publishTime"
	varEventTime   = "eventTime"
	varProducer    = "producer"
	varSize        = "size"
	varPartition   = "partition"
	varOffset      = "offset"
	varPayload     = "payload"
)

// variableNames are the names of all variables.
var variableNames = []string{
	varKey, varProperties, varHeaders, varPublishTime, varEventTime, varProducer, varSize, varPartition, varOffset,
	varPayload,
}

// environment declares the variables of a message and the standard library of CEL.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.ParserRecursionLimit(maxNesting),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateComprehensionNestingLimit(maxLoops)),
		cel.CrossTypeNumericComparisons(true),
		cel.Variable(varKey, cel.StringType),
		cel.Variable(varProperties, cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable(varHeaders, cel.ListType(cel.DynType)),
		cel.Variable(varPublishTime, cel.TimestampType),
		cel.Variable(varEventTime, cel.TimestampType),
		cel.Variable(varProducer, cel.StringType),
		cel.Variable(varSize, cel.IntType),
		cel.Variable(varPartition, cel.IntType),
		cel.Variable(varOffset, cel.IntType),
		cel.Variable(varPayload, cel.DynType),
	)
})

// Filter is a compiled expression. It is immutable and safe for concurrent use.
type Filter struct {
	text    string
	regexps int // instructions of its regular expressions
	program cel.Program
}

// Compile compiles an expression. It returns ErrExpression with the reason and the position for a
// text that is not valid.
func Compile(text string) (*Filter, error) {
	f, _, err := compileFilter(text)
	return f, err
}

// compileFilter also returns the expression as it was written.
func compileFilter(text string) (*Filter, *cel.Ast, error) {
	if len(text) > MaxExpression {
		return nil, nil, errs.Newf(errs.Invalid, "%w: it has %d bytes, at most %d are allowed", ErrExpression,
			len(text), MaxExpression)
	}
	env, err := environment()
	if err != nil {
		return nil, nil, fmt.Errorf("creating the environment of expressions: %w", err)
	}
	written, err := compile(env, text)
	if err != nil {
		return nil, nil, err
	}
	f := &Filter{text: text}
	if f.regexps, err = checkCalls(written.NativeRep()); err != nil {
		return nil, nil, err
	}
	checked := written
	if ordered, ok := cheapFirst(written); ok {
		if checked, err = compile(env, ordered); err != nil {
			return nil, nil, err
		}
	}
	if f.program, err = env.Program(checked, cel.EvalOptions(cel.OptOptimize)); err != nil {
		return nil, nil, invalid(err)
	}
	return f, written, nil
}

func compile(env *cel.Env, text string) (*cel.Ast, error) {
	checked, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, invalid(err)
	}
	if t := checked.OutputType(); t != cel.BoolType && t != cel.DynType {
		return nil, errs.Newf(errs.Invalid, "%w: it must be true or false for a message, but its type is %s",
			ErrExpression, t)
	}
	return checked, nil
}

func invalid(err error) error { return errs.Newf(errs.Invalid, "%w: %w", ErrExpression, err) }
