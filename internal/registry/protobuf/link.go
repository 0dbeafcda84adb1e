package protobuf

import (
	"errors"
	"strings"

	"github.com/bufbuild/protocompile/ast"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/options"
	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
)

// rootPath names the schema itself while it is compiled. No import path can
// collide with it, because closures never hold a reference of that name.
const rootPath = "<schema>"

// parseTree runs the syntax analysis alone and reports the first error only:
// what follows a syntax error is noise.
func parseTree(path, text string) (*ast.FileNode, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	found := &problems{positions: true}
	handler := reporter.NewHandler(reporter.NewReporter(func(err reporter.ErrorWithPos) error {
		_ = found.report(err)
		return err
	}, nil))
	tree, err := parser.Parse(path, strings.NewReader(text), handler)
	if err != nil {
		return nil, found.err(err)
	}
	return tree, nil
}

// session links the files of one closure, each once, sharing one table of
// names so that the same name defined twice is found.
type session struct {
	names *linker.Symbols
	files map[*source]linker.File
}

func newSession() *session {
	return &session{names: &linker.Symbols{}, files: map[*source]linker.File{}}
}

// link compiles src after everything it imports. The imports must have passed
// checkClosure.
func (s *session) link(src *source) (linker.File, error) {
	if src.builtin != nil {
		return src.builtin, nil
	}
	if done := s.files[src]; done != nil {
		return done, nil
	}
	tree, exact, err := src.compilable()
	if err != nil {
		return nil, err
	}
	linked, err := s.linkTree(src, tree, &problems{positions: exact})
	if err != nil {
		return nil, err
	}
	s.files[src] = linked
	return linked, nil
}

// linkTree runs every check that protoc would.
func (s *session) linkTree(src *source, tree *ast.FileNode, found *problems) (linker.Result, error) {
	var imports linker.Files
	for _, imported := range src.imports {
		linked, err := s.link(imported)
		if err != nil {
			return nil, invalidf("import %q: %v", imported.path, err)
		}
		imports = append(imports, linked)
	}
	handler := found.handler()
	parsed, err := parser.ResultFromAST(tree, true, handler)
	if err != nil {
		return nil, found.err(err)
	}
	linked, err := linker.Link(parsed, imports, s.names, handler)
	if err != nil {
		return nil, found.err(err)
	}
	if _, err := options.InterpretOptions(linked, handler); err != nil {
		return nil, found.err(err)
	}
	if err := linked.ValidateOptions(handler, s.names); err != nil {
		return nil, found.err(err)
	}
	if err := handler.Error(); err != nil {
		return nil, found.err(err)
	}
	return linked, nil
}

// compilable returns a syntax tree that protoc's rules can judge. Two things
// are taken out first, because protoc refuses them and clients rely on them:
// map entries written as messages, and custom options whose definition nobody
// uploaded. exact is false when that moved the text about.
func (src *source) compilable() (tree *ast.FileNode, exact bool, err error) {
	model := src.judged()
	if model == src.model && src.text != "" {
		tree, err = parseTree(src.path, src.text)
		return tree, true, err
	}
	tree, err = parser.Parse(src.path, strings.NewReader(printLines(model)), reporter.NewHandler(nil))
	if err != nil {
		return nil, false, invalidf("%v", err)
	}
	return tree, false, nil
}

// locate looks for the places in the author's text of what is wrong with it,
// after the check of a changed copy has found that something is. It returns nil
// when all it can find are the things that the copy left out on purpose.
func locate(root *source, tree *ast.FileNode) error {
	found := &problems{positions: true, skip: func(text string) bool {
		return strings.Contains(text, "unknown extension") || strings.Contains(text, "map_entry option") ||
			strings.Contains(text, "synthetic map entry")
	}}
	_, err := newSession().linkTree(root, tree, found)
	if len(found.list) == 0 {
		return nil
	}
	return err
}

// locateImport adds the place of a missing import of the root.
func locateImport(err error, tree *ast.FileNode) error {
	var missing *missingImport
	if !errors.As(err, &missing) || missing.from != rootPath {
		return err
	}
	for _, decl := range tree.Decls {
		if imp, ok := decl.(*ast.ImportNode); ok && imp.Name.AsString() == missing.path {
			return invalidAt(positionOf(tree, imp.Name), err.Error())
		}
	}
	return err
}
