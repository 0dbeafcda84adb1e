package protobuf

import (
	"strings"
	"sync"

	"github.com/bufbuild/protocompile/ast"
)

// Reference is one direct reference of a schema: Name is the import path. The
// references of Schema itself make the closure.
type Reference struct {
	Name, Subject string
	Version       int
	Schema        *Schema
}

// Schema is a parsed Protobuf schema. It is immutable and safe for use by many
// goroutines.
type Schema struct {
	written *file // as sent; root.model differs when maps were spelled out
	root    *source
	refs    []Reference

	canonical  func() string
	normalized func() string
}

// Parse reads .proto text, or else base64 of a FileDescriptorProto, and checks
// it as strictly as protoc does. The text of the error is for the author of the
// schema.
func Parse(text string, refs []Reference) (*Schema, error) {
	return parse(text, refs, true)
}

// ParseUnchecked is Parse for a registry in IMPORT mode: the text must have
// Protobuf's syntax, but nothing it names has to exist.
func ParseUnchecked(text string, refs []Reference) (*Schema, error) {
	return parse(text, refs, false)
}

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
		return nil, invalidf("edition %.40q is not supported: use edition %q, or syntax \"proto2\" or \"proto3\"",
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

// checkLinks compiles the root with all it reaches and forgets the result: the
// model is all that printing and comparing need, and it is much smaller.
func checkLinks(root *source, tree *ast.FileNode, text string) error {
	if err := checkClosure(root); err != nil {
		return locateImport(err, tree)
	}
	if root.text != "" && root.judged() == root.model {
		_, err := newSession().linkTree(root, tree, &problems{positions: true})
		return err
	}
	if longLines(text) {
		tree = nil // another is made; both would not fit into memory
	}
	_, err := newSession().link(root)
	if err == nil || tree == nil {
		return err
	}
	if located := locate(root, tree); located != nil {
		return located
	}
	return err
}

// Canonical returns the schema reprinted in the registry's layout: comments
// gone, two spaces of indent, the order of messages kept.
func (s *Schema) Canonical() string { return s.canonical() }

// Normalized returns the text that normalize=true stores: schemas that differ
// only in order and spelling have the same one.
func (s *Schema) Normalized() string { return s.normalized() }
