package access

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// Bounds on expressions. The cost limit is far above any comparison of names
// and far below what could be felt.
const (
	maxExpression   = 4 << 10
	expressionDepth = 64
	expressionCost  = 20_000
)

// expressions is where bindings' conditions are compiled: the srn variables and
// the standard library. Variables are declared one by one under dotted names,
// so a misspelt one is an error when the binding is made, not a silent miss.
var expressions = sync.OnceValues(func() (*cel.Env, error) {
	opts := []cel.EnvOption{
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(expressionDepth),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateComprehensionNestingLimit(1)),
	}
	for _, name := range fieldVariables {
		opts = append(opts, cel.Variable(name, cel.StringType))
	}
	return cel.NewEnv(opts...)
})

// expression is a compiled condition.
type expression struct{ program cel.Program }

func compileExpression(text string) (*expression, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("is longer than %d bytes", maxExpression)
	}
	env, err := expressions()
	if err != nil {
		return nil, fmt.Errorf("cannot be compiled: %w", err)
	}
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("is not a valid expression: %w", err)
	}
	if ast.OutputType() != cel.BoolType {
		return nil, errors.New("must evaluate to true or false, this one is of type " + ast.OutputType().String())
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptPartialEval), cel.CostLimit(expressionCost))
	if err != nil {
		return nil, fmt.Errorf("cannot be compiled: %w", err)
	}
	return &expression{program}, nil
}

// matches evaluates the condition for a scope. What the scope leaves open is
// unknown, not empty: a condition holds only if it holds whatever the open
// fields are, so that permissions inherit downwards and `srn.tenant != 'x'`
// does not allow a call about all tenants. Errors, and costs over the limit,
// are no match.
func (e *expression) matches(scope *Scope) bool {
	unknown := make([]*interpreter.AttributePattern, 0, fieldCount)
	for i := range fieldCount {
		if scope.field(i) == "" {
			unknown = append(unknown, unknownPatterns[i])
		}
	}
	own := *scope // so that only conditions, not every decision, put a scope on the heap
	vars, err := interpreter.NewPartialActivation(scopeVariables{&own}, unknown...)
	if err != nil {
		return false
	}
	out, _, err := e.program.Eval(vars)
	return err == nil && out == types.True
}

// unknownPatterns has one pattern per field, made once.
var unknownPatterns = func() (out [fieldCount]*interpreter.AttributePattern) {
	for i, variable := range fieldVariables {
		out[i] = cel.AttributePattern(variable)
	}
	return out
}()

// scopeVariables lets expressions read a scope without building a map.
type scopeVariables struct{ scope *Scope }

// ResolveName implements interpreter.Activation.
func (v scopeVariables) ResolveName(name string) (any, bool) {
	for i, variable := range fieldVariables {
		if variable == name {
			return v.scope.field(i), true
		}
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (scopeVariables) Parent() interpreter.Activation { return nil }
