package jsonschema

import (
	"fmt"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/registry/jsontree"
)

// ErrInvalid is what every failure of Parse wraps. The text of the failure,
// without the sentinel's own, is meant for the person who wrote the schema.
var ErrInvalid = errs.New(errs.Invalid, "invalid JSON Schema")

// ErrTooComplex is what Compare returns when its answer would take more work
// than anyone may cause.
var ErrTooComplex = errs.New(errs.Invalid, "JSON Schema is too complex")

// Reference is a registered schema that another one may name in a $ref.
type Reference struct {
	// Name is the URI used in $ref, absolute or relative to the $id of the
	// schema that uses it.
	Name string
	// Schema is what the name stands for, parsed with its own references.
	Schema *Schema
}

// Schema is a parsed, valid JSON Schema. It is immutable.
type Schema struct {
	doc       *document
	root      *node
	canonical string
}

// Parse reads a schema. The text must be one JSON object or boolean that is
// valid under its draft's metaschema, and each $ref in it must lead to
// something in the document, in refs, or to a published metaschema. The text
// of the error becomes the details of the registry's answer. Parse reports its
// steps to spend, and ends with the error of that, if any; nil stands for no one.
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
		return nil, fmt.Errorf("a JSON Schema is an object or a boolean")
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

// Canonical returns the text the registry stores and compares by: the schema
// printed compactly, with its own order of members and its own numbers.
func (s *Schema) Canonical() string { return s.canonical }

// Normalized returns the canonical text.
// Quirk: docs/spec/registry.md#json-schema lets normalize have no effect on
// JSON Schema.
func (s *Schema) Normalized() string { return s.canonical }

// invalidError carries a cause under ErrInvalid without repeating its text.
type invalidError struct{ cause error }

func (e *invalidError) Error() string   { return e.cause.Error() }
func (e *invalidError) Unwrap() []error { return []error{ErrInvalid, e.cause} }
