package goclient_test

import (
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write client/api.txt")

// TestExportedNames compares the exported names of the client with client/api.txt, so that a change that breaks
// programs is noticed. client/README.md promises compatibility.
func TestExportedNames(t *testing.T) {
	t.Parallel()
	var got []string
	for _, folder := range []string{"", "resources", "schemas"} {
		got = append(got, exported(t, folder)...)
	}
	slices.Sort(got)
	text := strings.Join(got, "\n") + "\n"
	name := filepath.Join(clientFolder, "api.txt")
	if *update {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := string(must[[]byte](t)(os.ReadFile(name)))
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("exported names differ from client/api.txt; if client/README.md#compatibility allows the change, run "+
			"this test with -update (-want +got):\n%s", diff)
	}
}

// exported returns a line for each exported name of a package.
func exported(t *testing.T, folder string) (lines []string) {
	t.Helper()
	files := token.NewFileSet()
	names := must[[]string](t)(fs.Glob(os.DirFS(filepath.Join(clientFolder, folder)), "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must[*ast.File](t)(parser.ParseFile(files, filepath.Join(clientFolder, folder, name), nil, 0))
		prefix := file.Name.Name + ": "
		ast.FileExports(file)
		for _, d := range file.Decls {
			for _, line := range declared(d) {
				var b strings.Builder
				if err := format.Node(&b, files, line); err != nil {
					t.Fatal(err)
				}
				lines = append(lines, prefix+strings.Join(strings.Fields(b.String()), " "))
			}
		}
	}
	return lines
}

// declared returns the declarations of the names that a declaration declares, without bodies. Each field of a struct
// is a line of its own.
func declared(d ast.Decl) (nodes []any) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && !isExportedType(d.Recv.List[0].Type) {
			return nil
		}
		d.Body = nil
		return []any{d}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if s, ok := spec.Type.(*ast.StructType); ok {
					nodes = append(nodes, fields(spec.Name.Name, s)...)
				}
				nodes = append(nodes, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
			case *ast.ValueSpec:
				if d.Tok == token.VAR {
					spec.Values = nil
				}
				nodes = append(nodes, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
			}
		}
	}
	return nodes
}

// isExportedType reports whether the type of a receiver is exported.
func isExportedType(receiver ast.Expr) bool {
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}

// fields returns the fields of a struct as variables with the name of the struct, and removes them from it.
func fields(name string, s *ast.StructType) (nodes []any) {
	for _, f := range s.Fields.List {
		for _, ident := range f.Names {
			spec := &ast.ValueSpec{Names: []*ast.Ident{ast.NewIdent(name + "." + ident.Name)}, Type: f.Type}
			nodes = append(nodes, &ast.GenDecl{Tok: token.VAR, Specs: []ast.Spec{spec}})
		}
		if f.Names == nil {
			spec := &ast.ValueSpec{Names: []*ast.Ident{ast.NewIdent(name + ".embedded")}, Type: f.Type}
			nodes = append(nodes, &ast.GenDecl{Tok: token.VAR, Specs: []ast.Spec{spec}})
		}
	}
	s.Fields = &ast.FieldList{}
	s.Incomplete = false
	return nodes
}
