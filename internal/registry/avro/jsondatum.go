package avro

import (
	"encoding/base64"
	"errors"
	"unicode/utf8"

	"freshet/internal/registry/jsontree"
)

// ValidateJSON reports whether data is a JSON document that matches the schema, for topics
// with a schema of type JSON. A union value may be plain or, as in Avro's JSON encoding, an
// object that names the branch. A field may be missing if it has a default or allows null,
// and additional fields are allowed, because JSON producers in other languages write records
// in this way.
func (s *Schema) ValidateJSON(data []byte) error {
	if !utf8.Valid(data) {
		return invalid("message is not UTF-8")
	}
	v, err := readJSON(string(data), datumLimits, "message")
	if err != nil {
		return err
	}
	if v == nil {
		return invalid("message is empty")
	}
	m := matcher{budget: datumWorkBase + datumWorkByte*len(data)}
	return m.match(v, s.root)
}

// matcher checks JSON values against types.
type matcher struct {
	budget int
	tries  int // number of enclosing unions whose branches are being tried
	failed map[valueOf]error
}

// match returns an error if v is not of type n.
func (m *matcher) match(v *jsontree.Value, n *node) error {
	if m.budget--; m.budget < 0 {
		return invalid("message is too costly to validate")
	}
	switch n.kind {
	case kindArray:
		if v.Kind != jsontree.Array {
			return m.mismatch(v, n)
		}
		for i := range v.List.Values {
			if err := m.match(&v.List.Values[i], n.elem); err != nil {
				return within(err, "item %d", i)
			}
		}
		return nil
	case kindMap:
		if v.Kind != jsontree.Object {
			return m.mismatch(v, n)
		}
		for i, key := range v.List.Keys {
			if err := m.match(&v.List.Values[i], n.elem); err != nil {
				return within(err, "key %q", shorten(key))
			}
		}
		return nil
	case kindRecord:
		return m.record(v, n)
	case kindUnion:
		return m.union(v, n)
	}
	if matchSimple(v, n) {
		return nil
	}
	return m.mismatch(v, n)
}

// record checks an object against a record. Inside unions it caches failures, because nested
// unions would repeat the same checks.
func (m *matcher) record(v *jsontree.Value, n *node) error {
	if v.Kind != jsontree.Object {
		return m.mismatch(v, n)
	}
	if m.tries == 0 {
		return m.fields(v, n)
	}
	key := valueOf{v, n}
	if err, ok := m.failed[key]; ok {
		return err
	}
	err := m.fields(v, n)
	if err != nil {
		if m.failed == nil {
			m.failed = map[valueOf]error{}
		}
		m.failed[key] = err
	}
	return err
}

func (m *matcher) fields(v *jsontree.Value, n *node) error {
	for _, f := range n.named.fields {
		m.budget--
		of := v.Get(f.name)
		if of == nil {
			if f.def == nil && !nullable(f.node) {
				return invalid("field %q is missing", shorten(f.name))
			}
			continue
		}
		if err := m.match(of, f.node); err != nil {
			return within(err, "field %q", shorten(f.name))
		}
	}
	return nil
}

// union checks a value against the branches of a union: as a plain value first, then as an
// object that names the branch.
func (m *matcher) union(v *jsontree.Value, n *node) error {
	var nested []*node // branches that contain other types and must be tried
	for _, b := range n.branches {
		m.budget--
		switch {
		case matchSimple(v, b):
			return nil
		case v.Kind == jsontree.Array && b.kind == kindArray,
			v.Kind == jsontree.Object && (b.kind == kindMap || b.kind == kindRecord):
			nested = append(nested, b)
		}
	}
	named := namedBranch(v, n)
	if len(nested) == 1 && named == nil {
		return m.match(v, nested[0])
	}
	m.tries++
	defer func() { m.tries-- }()
	for _, b := range nested {
		if m.match(v, b) == nil {
			return nil
		}
	}
	if named != nil && m.match(&v.List.Values[0], named) == nil {
		return nil
	}
	return m.mismatch(v, n)
}

// namedBranch returns the branch that an object of one member names, or nil.
func namedBranch(v *jsontree.Value, union *node) *node {
	if v.Kind != jsontree.Object || len(v.List.Keys) != 1 {
		return nil
	}
	for _, b := range union.branches {
		if b.unionKey() == v.List.Keys[0] || b.kind.named() && b.named.name.name == v.List.Keys[0] {
			return b
		}
	}
	return nil
}

// matchSimple checks a value against a type that contains no others.
func matchSimple(v *jsontree.Value, n *node) bool {
	switch n.kind {
	case kindNull:
		return v.Kind == jsontree.Null
	case kindBoolean:
		return v.Kind == jsontree.False || v.Kind == jsontree.True
	case kindInt:
		return fits32(v) || v.Kind == jsontree.String && n.logicalType() != ""
	case kindLong:
		// Dates and times are commonly written as text in JSON.
		return fits64(v) || v.Kind == jsontree.String && n.logicalType() != ""
	case kindFloat, kindDouble:
		return v.Kind == jsontree.Number || v.Kind == jsontree.String &&
			(v.Text == "NaN" || v.Text == "Infinity" || v.Text == "-Infinity")
	case kindBytes:
		return v.Kind == jsontree.String || v.Kind == jsontree.Number && n.logicalType() != ""
	case kindString:
		return v.Kind == jsontree.String
	case kindFixed:
		return v.Kind == jsontree.String && fixedText(v.Text, n.named.size) || v.Kind == jsontree.Number &&
			n.logicalType() != ""
	case kindEnum:
		_, ok := n.named.bySymbol[v.Text]
		return v.Kind == jsontree.String && ok
	}
	return false
}

// fixedText reports whether a string represents size bytes: one character each, or base64.
func fixedText(s string, size int) bool {
	if utf8.RuneCountInString(s) == size {
		return true
	}
	b, err := base64.StdEncoding.DecodeString(s)
	return err == nil && len(b) == size
}

// nullable reports whether a type allows null.
func nullable(n *node) bool { return n.nullable || n.kind == kindNull }

var errMismatch = invalid("message does not match its schema")

// mismatch returns the error of a value that is not of a type. While branches are being
// tried the error is discarded, so it has no details.
func (m *matcher) mismatch(v *jsontree.Value, n *node) error {
	if m.tries > 1 || m.tries == 1 && n.kind != kindUnion {
		return errMismatch
	}
	return invalid("%s is not of type %s", quoted(v), describe(n))
}

// within adds the position of a value to an error, unless the text becomes too long.
func within(err error, format string, args ...any) error {
	if errors.Is(err, errMismatch) || len(err.Error()) > 4*maxQuotedBytes {
		return err
	}
	return invalid(format+": %w", append(args, err)...)
}
