package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// ensembleName matches the names of values that are the ensemble of a server, or another view of
// it.
var ensembleName = regexp.MustCompile(`(?i)(ensemble|members|membership|topology)$|^(group|servers|shared)$`)

// TestNobodyAsksForAnEnsemble checks that no code compares an ensemble with nil. One server or
// several is a constructor: a single server has its own implementation of each interface, such as
// ensemble.Single, so code that gets one does not ask.
func TestNobodyAsksForAnEnsemble(t *testing.T) {
	t.Parallel()
	files := 0
	for _, p := range handWritten(t) {
		if !strings.HasPrefix(p.modulePath(), "internal/") && !strings.HasPrefix(p.modulePath(), "cmd/") {
			continue
		}
		for _, s := range sources(t, p, false) {
			files++
			for _, found := range ensembleComparisons(s.file) {
				t.Errorf("%s compares %s with nil; give a single server its own implementation instead",
					s.fset.Position(found.Pos()), lastName(found))
			}
		}
	}
	if files < 100 {
		t.Errorf("checked %d files, want all of internal/", files)
	}
}

// ensembleComparisons returns the expressions of a file that are an ensemble by name and are
// compared with nil.
func ensembleComparisons(file *ast.File) (found []ast.Expr) {
	ast.Inspect(file, func(n ast.Node) bool {
		comparison, ok := n.(*ast.BinaryExpr)
		if !ok || comparison.Op != token.EQL && comparison.Op != token.NEQ {
			return true
		}
		for _, pair := range [][2]ast.Expr{{comparison.X, comparison.Y}, {comparison.Y, comparison.X}} {
			if isNil(pair[1]) && ensembleName.MatchString(lastName(pair[0])) {
				found = append(found, pair[0])
			}
		}
		return true
	})
	return found
}

func isNil(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "nil"
}

// lastName returns the last name of an expression: that of a variable, a field, or a function
// that is called.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	case *ast.ParenExpr:
		return lastName(e.X)
	case *ast.StarExpr:
		return lastName(e.X)
	}
	return ""
}

// TestEnsembleComparisons proves that TestNobodyAsksForAnEnsemble can fail.
func TestEnsembleComparisons(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		"if s.ensemble == nil {}":                            1,
		"if nil != opts.Ensemble {}":                         1,
		"if m := c.cluster.Members; m != nil {}":             0, // by another name
		"if members := c.Members; members != nil {}":         1,
		"_ = s.group() == nil || (s.opts.Membership) != nil": 2,
		"_ = err == nil || len(members) == 0":                0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {\n"+body+"\n}\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(ensembleComparisons(file)); got != want {
			t.Errorf("%s: got %d comparisons, want %d", body, got, want)
		}
	}
}
