package avro

import (
	"slices"
	"strings"

	"freshet/internal/registry/jsontree"
)

// nodeProps writes the properties of a schema. In the normalized text those of the logical
// type come first.
func (p *printer) nodeProps(n *node) {
	if !p.normalize || len(n.props) < 2 {
		p.props(n.props, 0)
		return
	}
	props := slices.Clone(n.props)
	front := 0
	for _, key := range logicalProps(n) {
		at := slices.IndexFunc(props, func(x prop) bool { return x.key == key })
		moved := props[at]
		props = slices.Insert(slices.Delete(props, at, at+1), front, moved)
		front++
	}
	p.props(props, front)
}

// props writes properties. In the normalized text they are sorted by key, except for the
// first front ones.
func (p *printer) props(props []prop, front int) {
	if p.normalize && len(props) > front+1 {
		props = slices.Clone(props)
		slices.SortFunc(props[front:], func(a, b prop) int { return jsontree.CompareUTF16(a.key, b.key) })
	}
	for _, x := range props {
		p.Key(x.key)
		p.Value(x.value, p.normalize)
	}
}

// typeAliases writes the aliases of a named type, relative to its namespace. In the
// normalized text they are sorted by full name. Quirk: as in Java, an alias in the null
// namespace of a type in another namespace loses its leading dot.
func (p *printer) typeAliases(t *named) {
	if len(t.aliases) == 0 || p.only != nil {
		return
	}
	aliases := t.aliases
	if p.normalize {
		aliases = slices.Clone(aliases)
		slices.SortFunc(aliases, func(a, b typeName) int { return strings.Compare(a.alias(t.name), b.alias(t.name)) })
	}
	texts := make([]string, len(aliases))
	for i, a := range aliases {
		texts[i] = a.relative(t.name.space)
	}
	p.Key("aliases")
	p.strings(texts)
}

// fieldAliases writes the aliases of a field.
func (p *printer) fieldAliases(f *field) {
	if len(f.aliases) == 0 || p.only != nil {
		return
	}
	aliases := f.aliases
	if p.normalize {
		aliases = slices.Clone(aliases)
		slices.SortFunc(aliases, jsontree.CompareUTF16)
	}
	p.Key("aliases")
	p.strings(aliases)
}

// typedValue writes a default value in the normalized form of its type: the integer default
// of a double becomes 0.0, a double for a float is rounded, characters above U+00FF in bytes
// become question marks, objects are sorted by key. A nil node means an unknown type.
func (p *printer) typedValue(v *jsontree.Value, n *node) {
	if p.Err != nil {
		return
	}
	if n != nil && n.kind == kindUnion {
		n = p.defaultBranch(v, n)
	}
	switch {
	case n == nil:
		p.Value(v, true)
	case v.Kind == jsontree.Number && n.kind == kindFloat:
		p.raw(javaNumber(float64(float32(floatOf(v))), 32))
	case v.Kind == jsontree.Number && n.kind == kindDouble:
		p.raw(javaNumber(floatOf(v), 64))
	case v.Kind == jsontree.String && (n.kind == kindBytes || n.kind == kindFixed):
		p.Text(latin1(v.Text))
	case v.Kind == jsontree.Array && n.kind == kindArray:
		p.Open('[')
		for i := range v.List.Values {
			p.Comma()
			p.typedValue(&v.List.Values[i], n.elem)
		}
		p.Close(']')
	case v.Kind == jsontree.Object:
		p.typedObject(v, n)
	default:
		p.Value(v, true)
	}
}

// typedObject writes the default of a map or record.
func (p *printer) typedObject(v *jsontree.Value, n *node) {
	p.Open('{')
	for _, i := range v.List.Sorted() {
		var of *node
		switch n.kind {
		case kindMap:
			of = n.elem
		case kindRecord:
			if f := n.named.byName[v.List.Keys[i]]; f != nil {
				of = f.node
			}
		}
		p.Key(v.List.Keys[i])
		p.typedValue(&v.List.Values[i], of)
	}
	p.Close('}')
}

// raw writes text that is already JSON.
func (p *printer) raw(s string) { p.Buf = append(p.Buf, s...) }

// defaultBranch returns the branch of a union that determines the form of a default: the
// first that accepts a value of that kind, and among records the first for which the value
// is valid. Quirk: as in Java, an object is not converted if a branch that is neither null,
// map nor record comes first.
func (p *printer) defaultBranch(v *jsontree.Value, union *node) *node {
	for _, b := range union.branches {
		fits := false
		switch v.Kind {
		case jsontree.Number:
			fits = b.kind == kindFloat || b.kind == kindDouble || (b.kind == kindInt || b.kind == kindLong) && fits64(v)
		case jsontree.String:
			fits = b.kind == kindString || b.kind == kindBytes || b.kind == kindEnum || b.kind == kindFixed
		case jsontree.Array:
			fits = b.kind == kindArray
		case jsontree.Object:
			if b.kind != kindNull && b.kind != kindMap && b.kind != kindRecord {
				return nil
			}
			fits = p.defaults.valid(v, b)
		}
		if fits {
			return b
		}
	}
	return nil
}

// latin1 replaces the characters that do not fit into one byte.
func latin1(s string) string {
	return strings.Map(func(c rune) rune {
		if c > 0xFF {
			return '?'
		}
		return c
	}, s)
}
