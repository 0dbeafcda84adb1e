package avro

// defaultChecker validates default values. It remembers what it found out about
// a record: the fields that a default leaves out take their own defaults, and
// without a memory that would be exponential.
type defaultChecker struct {
	work  int
	depth int
	known map[valueOf]bool
}

// valueOf is a JSON value that is to be of a type.
type valueOf struct {
	value *value
	node  *node
}

// check validates the default of a field.
func (d *defaultChecker) check(f *field) error {
	if d.valid(f.def, f.node) {
		return nil
	}
	if d.exhausted() {
		return invalid("Invalid default for field %s: the default values of the schema are too costly to validate", shorten(f.name))
	}
	return invalid("Invalid default for field %s: %s not a %s", shorten(f.name), f.def.quoted(), describe(f.node))
}

// exhausted reports whether the work has come to its bounds. It stays so.
func (d *defaultChecker) exhausted() bool {
	if d.depth > maxDefaultDepth {
		d.work = maxDefaultWork + 1
	}
	return d.work > maxDefaultWork
}

// valid reports whether v can be a default of type n.
func (d *defaultChecker) valid(v *value, n *node) bool {
	if d.work++; d.exhausted() {
		return false
	}
	switch n.kind {
	case kindNull:
		return v.kind == valueNull
	case kindBoolean:
		return v.kind == valueFalse || v.kind == valueTrue
	case kindInt:
		return v.kind == valueInt
	case kindLong:
		return v.kind == valueInt || v.kind == valueLong
	case kindFloat, kindDouble:
		return v.isNumber()
	case kindBytes, kindString, kindFixed, kindEnum:
		// Quirk: neither symbols nor sizes are checked, as in Java.
		return v.kind == valueString
	case kindArray:
		return v.kind == valueArray && d.allValid(v, n.elem)
	case kindMap:
		return v.kind == valueObject && d.allValid(v, n.elem)
	case kindUnion:
		for _, b := range n.branches {
			if d.valid(v, b) {
				return true
			}
		}
		return false
	}
	return v.kind == valueObject && d.validRecord(v, n)
}

func (d *defaultChecker) allValid(v *value, elem *node) bool {
	for i := range v.list.values {
		if !d.valid(&v.list.values[i], elem) {
			return false
		}
	}
	return true
}

// validRecord checks the default of a record. One that needs itself to be
// complete is not valid.
func (d *defaultChecker) validRecord(v *value, n *node) bool {
	key := valueOf{v, n}
	if known, ok := d.known[key]; ok {
		return known
	}
	if d.known == nil {
		d.known = map[valueOf]bool{}
	}
	d.known[key] = false
	d.depth++
	defer func() { d.depth-- }()
	for _, f := range n.named.fields {
		of := v.get(f.name)
		if of == nil {
			of = f.def
		}
		if of == nil || !d.valid(of, f.node) {
			return false
		}
	}
	d.known[key] = true
	return true
}
