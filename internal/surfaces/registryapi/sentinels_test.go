package registryapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/registry/schemas"
)

// sentinels returns the errors that package schemas exports. It compares the list with
// the source of schemas, so that the list cannot miss a new error.
func sentinels(t *testing.T) []*errs.Error {
	t.Helper()
	known := map[string]*errs.Error{
		"ErrSubjectNotFound":       schemas.ErrSubjectNotFound,
		"ErrVersionNotFound":       schemas.ErrVersionNotFound,
		"ErrSchemaNotFound":        schemas.ErrSchemaNotFound,
		"ErrSubjectSoftDeleted":    schemas.ErrSubjectSoftDeleted,
		"ErrSubjectNotSoftDeleted": schemas.ErrSubjectNotSoftDeleted,
		"ErrVersionSoftDeleted":    schemas.ErrVersionSoftDeleted,
		"ErrVersionNotSoftDeleted": schemas.ErrVersionNotSoftDeleted,
		"ErrIncompatible":          schemas.ErrIncompatible,
		"ErrInvalidSchema":         schemas.ErrInvalidSchema,
		"ErrInvalidVersion":        schemas.ErrInvalidVersion,
		"ErrInvalidLevel":          schemas.ErrInvalidLevel,
		"ErrInvalidMode":           schemas.ErrInvalidMode,
		"ErrNotPermitted":          schemas.ErrNotPermitted,
		"ErrReferenceExists":       schemas.ErrReferenceExists,
		"ErrInvalidSubject":        schemas.ErrInvalidSubject,
		"ErrImport":                schemas.ErrImport,
	}
	names := exportedErrors(t, "../../registry/schemas")
	if len(names) != len(known) {
		t.Errorf("package schemas exports errors %v: got %d, want %d", names, len(names), len(known))
	}
	var list []*errs.Error
	for _, name := range names {
		if known[name] == nil {
			t.Errorf("schemas.%s is not in the list of this test", name)
			continue
		}
		list = append(list, known[name])
	}
	return list
}

// exportedErrors returns the names of the variables Err… of the package in a folder.
func exportedErrors(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names { // the only type of spec in a var declaration
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}
