package filter

import (
	"regexp/syntax"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"

	"freshet/internal/base/errs"
)

// checkCalls rejects calls whose cost has no limit: regular expressions that are not literals or are
// large when their repetitions are written out, and many concatenations. It returns the size of all
// regular expressions.
func checkCalls(checked *ast.AST) (regexps int, err error) {
	sums := 0
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if err != nil || e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		switch args := call.Args(); {
		case call.FunctionName() == "matches" && len(args) > 0:
			n, failure := checkRegexp(args[len(args)-1])
			regexps, err = regexps+n, failure
		case call.FunctionName() == operators.Add && !isAccumulator(args[0]):
			sums++
		}
	}))
	switch {
	case err != nil:
		return 0, err
	case regexps > maxRegexp:
		return 0, errs.Newf(errs.Invalid, "%w: its regular expressions are too large when their repetitions are "+
			"written out (%d steps, at most %d); use smaller counts", ErrExpression, regexps, maxRegexp)
	case sums > maxSums:
		return 0, errs.Newf(errs.Invalid, "%w: it has %d uses of +, at most %d are allowed",
			ErrExpression, sums, maxSums)
	}
	return regexps, nil
}

// isAccumulator reports whether an expression is the result variable of map or filter, which add to
// it.
func isAccumulator(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == parser.AccumulatorName
}

// checkRegexp returns the size of a regular expression, which must be a literal.
func checkRegexp(pattern ast.Expr) (int, error) {
	if pattern.Kind() != ast.LiteralKind {
		return 0, errs.Newf(errs.Invalid, "%w: the regular expression of matches() must be a literal such as \"a.*b\"",
			ErrExpression)
	}
	text, _ := pattern.AsLiteral().(types.String)
	parsed, err := syntax.Parse(string(text), syntax.Perl)
	if err != nil {
		return 0, invalid(err)
	}
	return instructions(parsed), nil
}

// instructions returns the size of a compiled regular expression, roughly.
func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<30)
}

// cheapFirst returns the expression with the parts that do not read the payload moved to the front,
// if its top level joins parts with && or || alone. The order does not change the result: CEL gives
// the operators the same result in both orders, also when one side is an error.
func cheapFirst(checked *cel.Ast) (text string, changed bool) {
	root := checked.NativeRep().Expr()
	if root.Kind() != ast.CallKind {
		return "", false
	}
	operator := root.AsCall().FunctionName()
	if operator != operators.LogicalAnd && operator != operators.LogicalOr {
		return "", false
	}
	var cheap, costly []ast.Expr
	for _, part := range parts(root, operator, nil) {
		if readsPayload(part) {
			costly = append(costly, part)
			continue
		}
		changed = changed || len(costly) > 0
		cheap = append(cheap, part)
	}
	if !changed {
		return "", false
	}
	var texts []string
	for _, part := range append(cheap, costly...) {
		one, err := parser.Unparse(part, checked.NativeRep().SourceInfo())
		if err != nil {
			return "", false
		}
		texts = append(texts, "("+one+")")
	}
	symbol := " && "
	if operator == operators.LogicalOr {
		symbol = " || "
	}
	text = strings.Join(texts, symbol)
	return text, len(text) <= MaxExpression
}

// parts returns the operands of a chain of one operator, in their order.
func parts(e ast.Expr, operator string, list []ast.Expr) []ast.Expr {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operator {
		return append(list, e)
	}
	for _, arg := range e.AsCall().Args() {
		list = parts(arg, operator, list)
	}
	return list
}

func readsPayload(e ast.Expr) bool {
	found := false
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && e.AsIdent() == varPayload
	}))
	return found
}
