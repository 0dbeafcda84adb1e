// Command testonly lists exported functions, and exported methods of exported types,
// under internal/ that only tests use. The deadcode tool does not find all of them: it
// considers a method reachable if reflection could call it.
//
// A method also counts as used if its type implements an interface that contains it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const ours = "freshet/"

// listed is the output of `go list` for a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// module holds the compiled packages of the module and of all their dependencies.
type module struct {
	packages   []listed
	checked    []*types.Package // ours, checked from source, including unexported declarations
	files      *token.FileSet
	importer   types.Importer
	used       map[string]bool           // used functions by full name
	interfaces map[string][]*types.Named // interfaces by method name
}

func main() {
	m, err := load(os.Args[1:])
	if err == nil {
		err = m.report(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testonly:", err)
		os.Exit(1) //nolint:forbidigo // a command, like those under cmd
	}
}

func load(patterns []string) (*module, error) {
	list := exec.CommandContext(context.Background(), "go",
		append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, patterns...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	m := &module{files: token.NewFileSet(), used: map[string]bool{}, interfaces: map[string][]*types.Named{}}
	m.addInterface(types.Universe.Lookup("error").Type())
	m.addInterface(unwrapper())
	exports := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		m.packages = append(m.packages, p)
		exports[p.ImportPath] = p.Export
	}
	m.importer = importer.ForCompiler(m.files, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range m.packages {
		if err := m.add(p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	return m, nil
}

// unwrapper returns the interface of an error with several causes. Package errors uses it without a name.
func unwrapper() types.Type {
	causes := types.NewVar(token.NoPos, nil, "", types.NewSlice(types.Universe.Lookup("error").Type()))
	signature := types.NewSignatureType(nil, nil, nil, nil, types.NewTuple(causes), false)
	method := types.NewFunc(token.NoPos, nil, "Unwrap", signature)
	unwrap := types.NewInterfaceType([]*types.Func{method}, nil).Complete()
	return types.NewNamed(types.NewTypeName(token.NoPos, nil, "unwrapper", nil), unwrap, nil)
}

// add records the interfaces of a package and, if the package is ours, the functions that it uses.
func (m *module) add(p listed) error {
	if p.Export == "" {
		return nil // package unsafe
	}
	compiled, err := m.importer.Import(p.ImportPath)
	if err != nil {
		return err
	}
	m.addInterfaces(compiled)
	if !strings.HasPrefix(p.ImportPath, ours) {
		return nil
	}
	syntax := make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		if syntax[i], err = parser.ParseFile(m.files, filepath.Join(p.Dir, name), nil,
			parser.SkipObjectResolution); err != nil {
			return err
		}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: m.importer}
	checked, err := config.Check(p.ImportPath, m.files, syntax, info)
	if err != nil {
		return err
	}
	m.addInterfaces(checked)
	m.checked = append(m.checked, checked)
	for _, object := range info.Uses {
		if f, ok := object.(*types.Func); ok {
			m.used[f.Origin().FullName()] = true
		}
	}
	return nil
}

func (m *module) addInterfaces(p *types.Package) {
	for _, name := range p.Scope().Names() {
		if t, ok := p.Scope().Lookup(name).(*types.TypeName); ok {
			m.addInterface(t.Type())
		}
	}
}

func (m *module) addInterface(t types.Type) {
	named, ok := t.(*types.Named)
	if !ok {
		return
	}
	if i, ok := named.Underlying().(*types.Interface); ok {
		for method := range i.Methods() {
			m.interfaces[method.Name()] = append(m.interfaces[method.Name()], named)
		}
	}
}

// report writes a line for every function that is not used.
func (m *module) report(w io.Writer) error {
	var functions []*types.Func
	for _, p := range m.checked {
		compiled, err := m.importer.Import(p.Path())
		if err != nil {
			return err
		}
		// Interfaces of other packages refer to the compiled types; unexported types exist
		// in the source-checked package only.
		for _, scope := range []*types.Scope{compiled.Scope(), p.Scope()} {
			for _, name := range scope.Names() {
				switch object := scope.Lookup(name).(type) {
				case *types.Func:
					functions = append(functions, object)
				case *types.TypeName:
					if named, ok := object.Type().(*types.Named); ok {
						m.useImplemented(named)
						if object.Exported() {
							functions = slices.AppendSeq(functions, named.Methods())
						}
					}
				}
			}
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, f := range functions {
		if !f.Exported() || m.used[f.FullName()] || !strings.HasPrefix(f.Pkg().Path(), ours+"internal/") {
			continue
		}
		m.used[f.FullName()] = true // report it once
		at := m.files.Position(f.Pos())
		path, err := filepath.Rel(dir, at.Filename)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s:%d: only tests use %s\n", path, at.Line, f.FullName()); err != nil {
			return err
		}
	}
	return nil
}

// useImplemented marks the methods with which a type implements interfaces as used,
// including methods of embedded fields. Generic types and interfaces are compared by
// method name only, because their type arguments are unknown here.
func (m *module) useImplemented(t *types.Named) {
	for selection := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		f, ok := selection.Obj().(*types.Func)
		if ok && slices.ContainsFunc(m.interfaces[f.Name()], func(i *types.Named) bool {
			if t.TypeParams().Len() > 0 || i.TypeParams().Len() > 0 {
				return true
			}
			return types.Implements(types.NewPointer(t), i.Underlying().(*types.Interface))
		}) {
			m.used[f.Origin().FullName()] = true
		}
	}
}
