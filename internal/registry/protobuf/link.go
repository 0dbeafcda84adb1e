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

// rootPath is the path of the schema itself while it is compiled.
const rootPath = "<schema>"

// parseTree parses the text without linking it. It reports only the first error, because the
// errors after a syntax error are not helpful.
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

// session links the files of one closure, each once. They share one symbol table, so that
// duplicate definitions are found.
type session struct {
	names *linker.Symbols
	files map[*source]linker.File
}

func newSession() *session {
	return &session{names: &linker.Symbols{}, files: map[*source]linker.File{}}
}

// link compiles src after its imports. The closure must have passed checkClosure.
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

// linkTree runs all checks of protoc.
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

// compilable returns a syntax tree that passes the checks of protoc. It does not contain two
// things that protoc rejects and clients rely on: map entries written as messages, and custom
// options without a definition. exact is false if the positions in the tree differ from
// those in the author's text.
func (src *source) compilable() (tree *ast.FileNode, exact bool, err error) {
	model := src.checkedModel()
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

// locateErrors finds the positions of errors in the author's text, after the check of a changed
// copy has failed. It returns nil if it finds only errors that the copy avoids.
func locateErrors(root *source, tree *ast.FileNode) error {
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

// locateImport adds the position of a missing import of the root.
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
