package messagingtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// names returns the names in a Go file for which match returns true.
func names(t *testing.T, path string, match func(ast.Node) (string, bool)) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if name, ok := match(n); ok {
			found[name] = true
		}
		return true
	})
	return found
}

// TestSentinelsAreComplete checks that Sentinels lists every error that messaging and the engine
// declare. The tests of the surfaces' error tables rely on the list.
func TestSentinelsAreComplete(t *testing.T) {
	t.Parallel()
	listed := names(t, "sentinels.go", func(n ast.Node) (string, bool) {
		if s, ok := n.(*ast.SelectorExpr); ok {
			return s.Sel.Name, true
		}
		return "", false
	})
	for _, path := range []string{"../errors.go", "../../../storage/engine/errors.go"} {
		declared := names(t, path, func(n ast.Node) (string, bool) {
			if v, ok := n.(*ast.ValueSpec); ok {
				return v.Names[0].Name, strings.HasPrefix(v.Names[0].Name, "Err")
			}
			return "", false
		})
		if len(declared) == 0 {
			t.Errorf("%s: got no errors, want some", path)
		}
		for name := range declared {
			if !listed[name] {
				t.Errorf("%s: got no %s in Sentinels, want it listed", path, name)
			}
		}
	}
}
