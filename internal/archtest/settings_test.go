package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"freshet/internal/config"
)

// TestSettingsAreRead checks that code reads every setting. Package server reads most
// of them; config/derived.go and Validate read the rest.
func TestSettingsAreRead(t *testing.T) {
	t.Parallel()
	read := map[string]bool{
		"SingleReplica": true, // Validate reads these three
		"InsecureHTTP":  true,
		"InsecurePlain": true,
	}
	files, err := filepath.Glob("../server/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no files in ../server: %v", err)
	}
	for _, path := range append(files, "../config/derived.go") {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				read[selector.Sel.Name] = true
			}
			return true
		})
	}
	for path, name := range leaves(reflect.TypeFor[config.Config](), "") {
		if !read[name] {
			t.Errorf("setting %s is read by no code", path)
		}
	}
}

// leaves maps the path of every field that is not a struct to the field's name.
func leaves(of reflect.Type, path string) map[string]string {
	found := map[string]string{}
	for i := range of.NumField() {
		field := of.Field(i)
		if !field.IsExported() {
			continue
		}
		at, kind := path+"."+field.Name, field.Type
		if kind.Kind() == reflect.Slice {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Struct {
			found[at] = field.Name
			continue
		}
		for inner, name := range leaves(kind, at) {
			found[inner] = name
		}
	}
	return found
}

// TestOneNameForTheServer checks that the address of the server has one environment variable,
// FRESHET_SERVER, in the command line, the examples, the console, the tests and the pages. (The
// setting baseURL of the server, FRESHET_BASE_URL, is something else.) The pattern is concatenated
// so that it does not match this file.
func TestOneNameForTheServer(t *testing.T) {
	t.Parallel()
	other := regexp.MustCompile(`\bFRESHET_` + `URL\b|\bBASE` + `_URL\b`)
	files := tracked(t, ".go", ".js", ".mjs", ".ts", ".py", ".sh", ".java", ".md", ".txtar", ".yaml", ".yml", ".html")
	for name, text := range files {
		if name == "CHANGELOG.md" { // it reports the names of earlier versions
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if match := other.FindString(line); match != "" {
				t.Errorf("%s:%d names the server %s, want FRESHET_SERVER", name, i+1, match)
			}
		}
	}
}
