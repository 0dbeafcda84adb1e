package protobuf

import (
	"strings"
	"sync"

	"github.com/bufbuild/protocompile/ast"
)

// Reference is one direct reference of a schema. Name is the import path. The closure
// includes the references of Schema.
type Reference struct {
	Name, Subject string
	Version       int
	Schema        *Schema
}

// Schema is a parsed Protobuf schema. It is immutable and safe for concurrent use.
type Schema struct {
	written *file // the original; root.model differs if foldMaps changed it
	root    *source
	refs    []Reference

	canonical  func() string
	normalized func() string
}

// Parse parses .proto text or base64 of a FileDescriptorProto, with all checks of protoc. The
// text of the error is for the author of the schema.
func Parse(text string, refs []Reference) (*Schema, error) { return parse(text, refs, true) }

// ParseUnchecked is Parse for a registry in IMPORT mode: it checks the syntax of the text, but
// not that the names in it exist.
func ParseUnchecked(text string, refs []Reference) (*Schema, error) { return parse(text, refs, false) }

func parse(text string, refs []Reference, check bool) (s *Schema, err error) {
	defer recovered(&err)
	if strings.TrimSpace(text) == "" {
		return nil, invalidf("schema is empty")
	}
	if len(text) > maxText {
		return nil, invalidf("schema of %d bytes is over the limit of %d", len(text), maxText)
	}
	if descriptor := decodeDescriptor(text); descriptor != nil {
		printed, err := descriptorText(descriptor, refs, check)
		if err != nil {
			return nil, err
		}
		text = printed
	}
	tree, err := parseTree(rootPath, text)
	if named := editionOf(text); named != "" && named != newestEdition && (check || err != nil) {
		return nil, invalidf("edition %.40q is not supported; use edition %q, or syntax \"proto2\" or \"proto3\"",
			named, newestEdition)
	}
	if err != nil {
		return nil, err
	}
	return newSchema(text, tree, refs, check)
}

func newSchema(text string, tree *ast.FileNode, refs []Reference, check bool) (*Schema, error) {
	written, err := convert(tree)
	if err != nil {
		return nil, err
	}
	if written.empty() {
		return nil, invalidf("schema declares nothing")
	}
	if len(written.imports) > maxImports {
		return nil, invalidf("schema has more than %d imports", maxImports)
	}
	root := &source{path: rootPath, model: foldMaps(written), text: text, size: len(text)}
	if root.model != written || longLines(text) {
		root.text = ""
	}
	if err := closure(root, refs, check); err != nil {
		return nil, err
	}
	s := &Schema{written: written, root: root, refs: refs}
	if check {
		if err := checkLinks(root, tree, text); err != nil {
			return nil, err
		}
	}
	s.canonical = sync.OnceValue(func() string { return printFile(s.written) })
	s.normalized = sync.OnceValue(func() string { return printFile(normalize(s.root)) })
	return s, nil
}

// checkLinks compiles the root with its closure and discards the result: printing and
// comparing need only the model, which is much smaller.
func checkLinks(root *source, tree *ast.FileNode, text string) error {
	if err := checkClosure(root); err != nil {
		return locateImport(err, tree)
	}
	if root.text != "" && root.checkedModel() == root.model {
		_, err := newSession().linkTree(root, tree, &problems{positions: true})
		return err
	}
	if longLines(text) {
		tree = nil // frees memory before link builds another tree
	}
	_, err := newSession().link(root)
	if err == nil || tree == nil {
		return err
	}
	if located := locateErrors(root, tree); located != nil {
		return located
	}
	return err
}

// Canonical returns the schema in the registry's layout: without comments, indented by two
// spaces, with messages in their order.
func (s *Schema) Canonical() string { return s.canonical() }

// Normalized returns the text that is stored with normalize=true. It is equal for schemas
// that differ only in order and notation.
func (s *Schema) Normalized() string { return s.normalized() }
