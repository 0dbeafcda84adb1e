package access

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
)

// expressionDepth bounds how deep expressions nest.
const expressionDepth = 64

// expressions is where bindings' conditions are compiled: the srn variables and
// the standard library. Variables are declared one by one under dotted names,
// so a misspelt one is an error when the binding is made, not a silent miss.
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
		return nil, errors.New("must evaluate to true or false, this one is of type " + ast.OutputType().String())
	}
	estimate, err := env.EstimateCost(ast, nameSizes{})
	if err != nil {
		return nil, fmt.Errorf("cannot be compiled: %w", err)
	}
	if estimate.Max > maxExpressionCost {
		return nil, fmt.Errorf(
			"may cost %d units to evaluate, limited to %d: compare with fewer names, or use prefixes", estimate.Max,
			maxExpressionCost)
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptPartialEval), cel.CostLimit(maxExpressionCost))
	if err != nil {
		return nil, fmt.Errorf("cannot be compiled: %w", err)
	}
	return &expression{program}, nil
}

// matches evaluates the condition for a scope. What the scope leaves open is
// unknown, not empty: a condition holds only if it holds whatever the open
// fields are, so that permissions inherit downwards and `srn.tenant != 'x'`
// does not allow a call about all tenants. Errors, and costs over the limit,
// are no match, and neither is what the budget has no more room for.
func (e *expression) matches(scope *Scope, spending *budget) bool {
	if !spending.open() {
		return false
	}
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
	out, details, err := e.program.Eval(vars)
	cost := int64(maxExpressionCost) // of an evaluation that was cut off
	if details != nil && details.ActualCost() != nil {
		cost = int64(*details.ActualCost()) //nolint:gosec // bounded by the limit
	}
	spending.spend(max(cost, 1))
	return err == nil && out == types.True
}

// nameSizes estimates for names: nothing here is longer than a restriction's.
type nameSizes struct{}

// EstimateSize implements checker.CostEstimator.
func (nameSizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if node.Type().Kind() == types.StringKind {
		return &checker.SizeEstimate{Max: maxRestrictionValue}
	}
	return nil
}

// EstimateCallCost implements checker.CostEstimator.
func (nameSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
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
