package archtest

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// errorMakers are the functions that make errors, with the index of their text.
var errorMakers = map[string]int{"errors.New": 0, "fmt.Errorf": 0, "errs.New": 1, "errs.Newf": 1}

// loggers are the methods that log, with the index of their message.
var loggers = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "LogAttrs": 2, "Log": 2}

// TestMessages checks the style of errors and log messages: lower case, no article at the
// start, no full stop at the end. An error is logged as slog.Any("error", err), so that
// handlers get the error itself.
func TestMessages(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, p := range handWritten(t) {
		if strings.HasPrefix(p.modulePath(), "test/") || strings.HasPrefix(p.modulePath(), "bench/") {
			continue
		}
		for _, s := range sources(t, p, false) {
			ast.Inspect(s.file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				problem, isMessage := messageProblem(call)
				if isMessage {
					checked++
				}
				if problem != "" {
					t.Errorf("%s: %s", s.fset.Position(call.Pos()), problem)
				}
				return true
			})
		}
	}
	if checked < 1000 {
		t.Errorf("checked %d messages, want at least 1000: does the test still find them?", checked)
	}
}

// messageProblem returns what is wrong with a call that makes an error or logs.
func messageProblem(call *ast.CallExpr) (problem string, isMessage bool) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	name := selector.Sel.Name
	if x, ok := selector.X.(*ast.Ident); ok {
		name = x.Name + "." + name
	}
	if name == "slog.String" && len(call.Args) == 2 && literal(call.Args[0]) == "error" && isErrorText(call.Args[1]) {
		return `logs the text of an error; use slog.Any("error", err)`, true
	}
	at, ok := errorMakers[name]
	if !ok {
		if at, ok = loggers[selector.Sel.Name]; !ok {
			return "", false
		}
	}
	if len(call.Args) <= at {
		return "", false
	}
	text := literal(call.Args[at])
	if text == "" {
		return "", false
	}
	first, _, _ := strings.Cut(text, " ")
	switch {
	case first == "the" || first == "a" || first == "an" || first == "The" || first == "A" || first == "An":
		return "message begins with an article: " + strconv.Quote(text), true
	case strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "..."):
		return "message ends with a full stop: " + strconv.Quote(text), true
	}
	return "", true
}

// isErrorText reports whether an expression is a call of Error.
func isErrorText(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "Error" && len(call.Args) == 0
}

// literal returns the value of a string literal, or of the first part of a concatenation.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			if err == nil {
				return text
			}
		}
	case *ast.BinaryExpr:
		return literal(e.X)
	}
	return ""
}
