package access

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// expressionDepth bounds the nesting of expressions.
const expressionDepth = 64

// expressions returns the CEL environment for conditions: the srn variables and the
// standard library. Each variable is declared with its dotted name, so that a misspelled
// name is an error when the binding is created and not a condition that never matches.
var expressions = sync.OnceValues(func() (*cel.Env, error) {
	opts := []cel.EnvOption{
		cel.ParserExpressionSizeLimit(MaxCEL),
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
	if len(text) > MaxCEL {
		return nil, fmt.Errorf("is longer than %d bytes", MaxCEL)
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
		return nil, errors.New("must evaluate to true or false, but its type is " + ast.OutputType().String())
	}
	estimate, err := env.EstimateCost(ast, nameSizeEstimator{})
	if err != nil {
		return nil, fmt.Errorf("cannot be compiled: %w", err)
	}
	if estimate.Max > maxExpressionCost {
		return nil, fmt.Errorf(
			"may cost %d units to evaluate, limited to %d; compare with fewer names, or use prefixes", estimate.Max,
			maxExpressionCost)
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptPartialEval), cel.CostLimit(maxExpressionCost))
	if err != nil {
		return nil, fmt.Errorf("cannot be compiled: %w", err)
	}
	return &expression{program}, nil
}

// matches evaluates the condition for a scope. Empty fields of the scope are unknown
// values, not empty strings: the condition matches only if it is true for all values of
// these fields. So permissions are inherited downwards, and `srn.tenant != 'x'` does not
// allow a call about all tenants. The condition does not match if the evaluation fails,
// exceeds its cost limit, or the budget is used up.
func (e *expression) matches(scope *Scope, spending *budget) bool {
	return e.evaluate(scope, spending) == types.True
}

// mayMatchWithin reports whether the condition can be true for some values of the empty fields of a scope.
func (e *expression) mayMatchWithin(scope *Scope, spending *budget) bool {
	out := e.evaluate(scope, spending)
	return out != nil && (out == types.True || types.IsUnknown(out))
}

// evaluate returns the value of the condition, which is unknown if it depends on the empty fields of the scope;
// nil if the evaluation fails.
func (e *expression) evaluate(scope *Scope, spending *budget) ref.Val {
	if !spending.available() {
		return nil
	}
	unknown := make([]*interpreter.AttributePattern, 0, fieldCount)
	for i := range fieldCount {
		if scope.field(i) == "" {
			unknown = append(unknown, unknownPatterns[i])
		}
	}
	own := *scope // a copy, so that the scope escapes to the heap only for conditions
	vars, err := interpreter.NewPartialActivation(scopeVariables{&own}, unknown...)
	if err != nil {
		return nil
	}
	out, details, err := e.program.Eval(vars)
	cost := int64(maxExpressionCost) // for an evaluation that exceeded the limit
	if details != nil && details.ActualCost() != nil {
		cost = int64(*details.ActualCost()) //nolint:gosec // bounded by the limit
	}
	spending.spend(max(cost, 1))
	if err != nil {
		return nil
	}
	return out
}

// nameSizeEstimator estimates the size of variables: no name is longer than a value of a
// restriction.
type nameSizeEstimator struct{}

// EstimateSize implements checker.CostEstimator.
func (nameSizeEstimator) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if node.Type().Kind() == types.StringKind {
		return &checker.SizeEstimate{Max: maxRestrictionValue}
	}
	return nil
}

// EstimateCallCost implements checker.CostEstimator.
func (nameSizeEstimator) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// unknownPatterns contains one pattern per field.
var unknownPatterns = func() (out [fieldCount]*interpreter.AttributePattern) {
	for i, variable := range fieldVariables {
		out[i] = cel.AttributePattern(variable)
	}
	return out
}()

// scopeVariables is the activation for a scope. It avoids building a map.
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
