package jsonschema

import (
	"fmt"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/registry/jsontree"
)

// ErrInvalid is wrapped by every error of Parse. The text of the error, which does not
// repeat the text of ErrInvalid, is for the author of the schema.
var ErrInvalid = errs.New(errs.Invalid, "invalid JSON Schema")

// ErrTooComplex means that Parse or Compare would exceed a limit of work.
var ErrTooComplex = errs.New(errs.Invalid, "JSON Schema is too complex")

// Reference is a registered schema that another one may name in a $ref.
type Reference struct {
	// Name is the URI used in $ref, absolute or relative to the $id of the
	// schema that uses it.
	Name string
	// Schema is the referenced schema, parsed with its own references.
	Schema *Schema
}

// Schema is a parsed, valid JSON Schema. It is immutable.
type Schema struct {
	doc       *document
	root      *node
	canonical string
}

// Parse parses a schema. The text must be one JSON object or boolean that is valid under the
// metaschema of its draft, and each $ref must lead to a schema in the document, in refs, or
// to a published metaschema. The registry returns the text of the error to the client. Parse
// reports its steps to spend, which may be nil, and returns the error of spend.
func Parse(text string, refs []Reference, spend func(steps int) error) (*Schema, error) {
	s, err := parse(text, refs, spend)
	if err != nil {
		return nil, &invalidError{err}
	}
	return s, nil
}

func parse(text string, refs []Reference, spend func(steps int) error) (*Schema, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("text is longer than %d bytes", maxText)
	}
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("empty schema")
	}
	for _, r := range refs {
		if r.Schema == nil {
			return nil, fmt.Errorf("reference %q has no schema", r.Name)
		}
	}
	root, err := parseValue(text)
	if err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	if root.Kind != jsontree.Object && !root.IsBool() {
		return nil, fmt.Errorf("JSON Schema must be an object or a boolean")
	}
	sums := newDigests(root)
	if err := checkMetaschema(draftOf(root), root, sums); err != nil {
		return nil, err
	}
	doc, err := newDocument(root, sums, refs, spend)
	if err != nil {
		return nil, err
	}
	if err := doc.checkLinks(); err != nil {
		return nil, err
	}
	model, err := buildModel(doc)
	if err != nil {
		return nil, err
	}
	doc.spent = nil
	return &Schema{doc: doc, root: model, canonical: emit(root)}, nil
}

// Canonical returns the text that the registry stores and compares: the schema printed
// compactly, with its own order of members and its own number literals.
func (s *Schema) Canonical() string { return s.canonical }

// Normalized returns the canonical text.
// Quirk: docs/spec/registry.md#json-schema lets normalize have no effect on
// JSON Schema.
func (s *Schema) Normalized() string { return s.canonical }

// invalidError wraps a cause and ErrInvalid, without the text of ErrInvalid.
type invalidError struct{ cause error }

func (e *invalidError) Error() string   { return e.cause.Error() }
func (e *invalidError) Unwrap() []error { return []error{ErrInvalid, e.cause} }
