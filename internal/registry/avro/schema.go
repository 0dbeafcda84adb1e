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

// Schema is a parsed and validated schema. It never changes and may be used
// from several goroutines.
type Schema struct {
	text string // as given to Parse
	refs []Reference

	root    *node
	types   []*node             // every named type that is known, those of references first
	foreign map[string]struct{} // full names of the types that came from references

	canonical  string
	normalized func() string
	resolved   func() string
}

// invalid makes an error for the caller who sent a bad schema or datum. Most
// texts are those of Java's parser, capital letter included.
func invalid(format string, args ...any) error {
	return errs.Newf(errs.Invalid, format, args...)
}

// Parse reads a schema as Java's parser reads a new one, with every name and
// default value validated. The types of the references are known to the text,
// in the order listed; the references of references come along with them.
// Inside the text a name may be used before its definition.
func Parse(text string, refs []Reference) (*Schema, error) {
	if len(text) > maxTextBytes {
		return nil, invalid("the schema text is longer than %d bytes", maxTextBytes)
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

// Canonical is the text under which the schema is stored: that of Java's
// Schema.toString, where types that came from references stand by name.
func (s *Schema) Canonical() string { return s.canonical }

// Normalized is the text under which the schema is stored when the client asks
// for normalization: the canonical text after aliases, properties and the
// members of JSON objects have been sorted, default values brought to the form
// of their type, and the parts of a logical type put in front.
func (s *Schema) Normalized() string { return s.normalized() }

// Resolved is the canonical text with the types of references written out, as
// the schema would read had it been sent in one piece.
func (s *Schema) Resolved() string { return s.resolved() }

// printOr prints in another form than the canonical one. Where that form would
// be nested too deeply, as many references in a chain can cause, it is the
// canonical text again.
func (s *Schema) printOr(p printer) string {
	text, err := s.print(p)
	if err != nil {
		return s.canonical
	}
	return text
}
