package avro

import (
	"slices"

	"freshet/internal/registry/jsontree"
)

// defaultChecker validates default values. It caches its results for records: fields that
// are missing in a default take their own defaults, which would need exponential time
// without a cache.
type defaultChecker struct {
	work    int
	depth   int
	results map[valueOf]bool
}

// valueOf is a pair of a JSON value and the type that it is checked against.
type valueOf struct {
	value *jsontree.Value
	node  *node
}

// check validates the default of a field.
func (d *defaultChecker) check(f *field) error {
	if d.valid(f.def, f.node) {
		return nil
	}
	if d.exhausted() {
		return invalid("Invalid default for field %s: default values of the schema are too costly to validate",
			shorten(f.name))
	}
	return invalid("Invalid default for field %s: %s not a %s", shorten(f.name), quoted(f.def), describe(f.node))
}

// exhausted reports whether a limit was reached, now or before.
func (d *defaultChecker) exhausted() bool {
	if d.depth > maxDefaultDepth {
		d.work = maxDefaultWork + 1
	}
	return d.work > maxDefaultWork
}

// valid reports whether v can be a default of type n.
func (d *defaultChecker) valid(v *jsontree.Value, n *node) bool {
	if d.work++; d.exhausted() {
		return false
	}
	switch n.kind {
	case kindNull:
		return v.Kind == jsontree.Null
	case kindBoolean:
		return v.Kind == jsontree.False || v.Kind == jsontree.True
	case kindInt:
		return fits32(v)
	case kindLong:
		return fits64(v)
	case kindFloat, kindDouble:
		return v.Kind == jsontree.Number
	case kindBytes, kindString, kindFixed, kindEnum:
		// Quirk: neither symbols nor sizes are checked, as in Java.
		return v.Kind == jsontree.String
	case kindArray:
		return v.Kind == jsontree.Array && d.allValid(v, n.elem)
	case kindMap:
		return v.Kind == jsontree.Object && d.allValid(v, n.elem)
	case kindUnion:
		return slices.ContainsFunc(n.branches, func(b *node) bool { return d.valid(v, b) })
	}
	return v.Kind == jsontree.Object && d.validRecord(v, n)
}

func (d *defaultChecker) allValid(v *jsontree.Value, elem *node) bool {
	for i := range v.List.Values {
		if !d.valid(&v.List.Values[i], elem) {
			return false
		}
	}
	return true
}

// validRecord checks the default of a record. A default that depends on itself is not valid.
func (d *defaultChecker) validRecord(v *jsontree.Value, n *node) bool {
	key := valueOf{v, n}
	if known, ok := d.results[key]; ok {
		return known
	}
	if d.results == nil {
		d.results = map[valueOf]bool{}
	}
	d.results[key] = false
	d.depth++
	defer func() { d.depth-- }()
	for _, f := range n.named.fields {
		of := v.Get(f.name)
		if of == nil {
			of = f.def
		}
		if of == nil || !d.valid(of, f.node) {
			return false
		}
	}
	d.results[key] = true
	return true
}
