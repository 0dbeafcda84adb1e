package avro

import (
	"strings"
	"sync"

	"freshet/internal/base/errs"
)

// Reference is a schema that another one uses by name.
type Reference struct {
	Name   string  // informational: the full name of the referenced type
	Schema *Schema // parsed with its own references
}

// Schema is a parsed and validated schema. It is immutable and safe for concurrent use.
type Schema struct {
	text string // as given to Parse
	refs []Reference

	root    *node
	types   []*node             // all named types, those of references first
	foreign map[string]struct{} // full names of the types of references

	canonical  string
	normalized func() string
	resolved   func() string
}

// invalid returns the error for an invalid schema or datum. Most texts are those of Java's
// parser, including the capital letter.
func invalid(format string, args ...any) error { return errs.Newf(errs.Invalid, format, args...) }

// Parse parses a schema as Java's parser does for a new schema: it validates every name and
// default value. The text can use the types of the references, in their order, and of their
// references. It can use a name before its definition.
func Parse(text string, refs []Reference) (*Schema, error) {
	if len(text) > maxTextBytes {
		return nil, invalid("schema text is longer than %d bytes", maxTextBytes)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	p := newParser()
	if err := p.addReferences(refs); err != nil {
		return nil, err
	}
	p.sealReferences()
	root, err := p.document(text)
	if err != nil {
		return nil, err
	}
	measure(p.defined)
	s := &Schema{text: text, refs: refs, root: root, types: p.types, foreign: p.foreign}
	if s.canonical, err = s.print(printer{foreign: s.foreign}); err != nil {
		return nil, err
	}
	s.normalized = sync.OnceValue(func() string { return s.printOr(printer{foreign: s.foreign, normalize: true}) })
	s.resolved = sync.OnceValue(func() string { return s.printOr(printer{}) })
	return s, nil
}

// Canonical returns the text under which the schema is stored: that of Java's
// Schema.toString, with types of references written by name.
func (s *Schema) Canonical() string { return s.canonical }

// Normalized returns the text under which the schema is stored if the client requests
// normalization: the canonical text with sorted aliases, properties and members of JSON
// objects, default values in the form of their type, and the properties of a logical type
// first.
func (s *Schema) Normalized() string { return s.normalized() }

// Resolved returns the canonical text with the types of references written out.
func (s *Schema) Resolved() string { return s.resolved() }

// printOr prints another form than the canonical one. It returns the canonical text if that
// form cannot be printed, for example because a chain of references nests it too deeply.
func (s *Schema) printOr(p printer) string {
	text, err := s.print(p)
	if err != nil {
		return s.canonical
	}
	return text
}
