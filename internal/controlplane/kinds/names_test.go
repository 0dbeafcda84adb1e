package kinds_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"freshet/api/generated/clientset/versioned/typed/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
)

// TestKindsAreKnownByNameInOnePlace checks that adding a kind takes one folder and one line: outside
// the folders of the kinds, only kinds.go names a kind, by its Go type, its client or its string.
func TestKindsAreKnownByNameInOnePlace(t *testing.T) {
	t.Parallel()
	texts, types := map[string]bool{}, map[string]bool{}
	folders := []string{
		"openapi",   // generated from all types
		"bootstrap", // a client of the API, which creates the objects of the first start
	}
	for _, definition := range kindstest.NewSet(t).Definitions() {
		info := definition.Info()
		texts[info.Kind], texts[info.Plural] = true, true
		for _, suffix := range []string{"", "List", "Spec", "Status"} {
			types[info.Kind+suffix] = true
		}
		folders = append(folders, "kinds/"+info.Singular)
	}
	clients := map[string]bool{}
	for method := range reflect.TypeFor[v1alpha1.CloudV1alpha1Interface]().Methods() {
		clients[method.Name] = method.Name != "RESTClient"
	}
	root := filepath.Join("..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, folder := range folders {
			if filepath.ToSlash(name) == folder {
				return filepath.SkipDir
			}
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			filepath.ToSlash(name) == "kinds/kinds.go" {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				if n.Kind != token.STRING || err != nil {
					return true
				}
				for _, part := range strings.Split(text, "/") {
					if texts[part] {
						t.Errorf("%s: the text %q names a kind", files.Position(n.Pos()), text)
					}
				}
			case *ast.SelectorExpr:
				of, _ := n.X.(*ast.Ident)
				if of != nil && of.Name == "v1alpha1" && types[n.Sel.Name] || of == nil && clients[n.Sel.Name] {
					t.Errorf("%s: %s is that of a kind", files.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestKindsNameTheirResourceOnce checks that the folder of a kind contains the name of its resource in one
// place only.
func TestKindsNameTheirResourceOnce(t *testing.T) {
	t.Parallel()
	for _, definition := range kindstest.NewSet(t).Definitions() {
		info := definition.Info()
		var found []string
		err := filepath.WalkDir(info.Singular, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if n, ok := node.(*ast.BasicLit); ok && n.Kind == token.STRING {
					text, err := strconv.Unquote(n.Value)
					if first, _, _ := strings.Cut(text, "/"); err == nil && first == info.Plural {
						found = append(found, files.Position(n.Pos()).String())
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 {
			t.Errorf("places that name the resource of %s: got %q, want one", info.Kind, found)
		}
	}
}
