package protobuf

import (
	"strings"
	"sync"

	"github.com/bufbuild/protocompile/ast"
	"github.com/bufbuild/protocompile/linker"
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
	checked bool

	canonical  func() string
	normalized func() string
	descriptor func() (linker.File, error)
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

func parse(text string, refs []Reference, check bool) (*Schema, error) {
	if strings.TrimSpace(text) == "" {
		return nil, invalidf("schema is empty")
	}
	if len(text) > maxText {
		return nil, invalidf("schema of %d bytes is over the limit of %d", len(text), maxText)
	}
	if descriptor := decodeDescriptor(text); descriptor != nil {
		printed, err := descriptorText(descriptor, refs)
		if err != nil {
			return nil, err
		}
		text = printed
	}
	tree, err := parseTree(rootPath, text)
	if err != nil {
		return nil, err
	}
	if tree.Syntax == nil && tree.Edition == nil && len(tree.Decls) == 0 {
		return nil, invalidf("schema declares nothing")
	}
	return newSchema(text, tree, refs, check)
}

func newSchema(text string, tree *ast.FileNode, refs []Reference, check bool) (*Schema, error) {
	written, err := convert(tree)
	if err != nil {
		return nil, err
	}
	root := &source{path: rootPath, model: foldMaps(written), text: text}
	if root.model != written {
		root.text = ""
	}
	if _, err := closure(root, refs); err != nil {
		return nil, err
	}
	s := &Schema{written: written, root: root, refs: refs, checked: check}
	if check {
		if err := checkLinks(root, tree); err != nil {
			return nil, err
		}
	}
	s.canonical = sync.OnceValue(func() string { return printFile(s.written) })
	s.normalized = sync.OnceValue(func() string { return printFile(normalize(s.root)) })
	s.descriptor = sync.OnceValues(s.link)
	return s, nil
}

// checkLinks compiles the root with all it reaches and forgets the result: the
// model is all that printing and comparing need, and it is much smaller.
func checkLinks(root *source, tree *ast.FileNode) error {
	if err := checkClosure(root); err != nil {
		return err
	}
	if root.text != "" && root.judged() == root.model {
		_, err := newSession().linkTree(root, tree, &problems{positions: true})
		return err
	}
	if _, err := newSession().link(root); err != nil {
		if located := locate(root, tree); located != nil {
			return located
		}
		return err
	}
	return nil
}

// link compiles the schema for decoding records.
func (s *Schema) link() (linker.File, error) {
	if !s.checked {
		if err := checkClosure(s.root); err != nil {
			return nil, err
		}
	}
	return newSession().link(s.root)
}

// Canonical returns the schema reprinted in the registry's layout: comments
// gone, two spaces of indent, the order of messages kept.
func (s *Schema) Canonical() string { return s.canonical() }

// Normalized returns the text that normalize=true stores: schemas that differ
// only in order and spelling have the same one.
func (s *Schema) Normalized() string { return s.normalized() }

// References returns the direct references that the schema was parsed with.
// The caller must not change them.
func (s *Schema) References() []Reference { return s.refs }
