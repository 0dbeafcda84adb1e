package avro

import (
	"strings"

	"freshet/internal/registry/jsontree"
)

// parser parses one text into nodes. It collects the types of the references, reads the
// text, resolves the names that were used before their definition, and then runs the checks
// that need resolved names.
type parser struct {
	byName    map[string]*node
	types     []*node // the values of byName in the order of definition
	defined   []*node // the types that this parser has created
	foreign   map[string]struct{}
	nameBytes int

	references map[string]struct{} // names of references that have been used

	unresolved []unresolvedName // names to resolve
	unions     []*node          // to check for nested and repeated branches
	defaults   []*field         // with a default to validate
	redefined  []redefinedTypes // to compare
}

// unresolvedName is a use of a type before its definition. place gets the type's node.
type unresolvedName struct {
	target **node
	name   string
}

// redefinedTypes is a definition in the text of a type that a reference also defines. It is
// valid if both definitions are equal.
type redefinedTypes struct{ known, again *node }

func newParser() *parser {
	return &parser{byName: map[string]*node{}, references: map[string]struct{}{}}
}

// sealReferences marks all types that are registered so far as types of references.
func (p *parser) sealReferences() {
	p.foreign = make(map[string]struct{}, len(p.types))
	for _, t := range p.types {
		p.foreign[t.named.name.full] = struct{}{}
	}
}

// document reads a whole text.
func (p *parser) document(text string) (*node, error) {
	v, err := readJSON(text, schemaLimits, "schema")
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, invalid("Cannot parse <null> schema")
	}
	var root *node
	if err := p.schema(v, "", &root); err != nil {
		return nil, err
	}
	return root, p.finish()
}

// finish resolves the open names and runs the checks that need them.
func (p *parser) finish() error {
	for _, o := range p.unresolved {
		t := p.byName[o.name]
		if t == nil {
			return invalid("Undefined schema: %s", shorten(o.name))
		}
		*o.target = t
	}
	for _, u := range p.unions {
		if err := checkUnion(u); err != nil {
			return err
		}
	}
	for _, r := range p.redefined {
		if !sameDefinition(r.known, r.again) {
			return invalid("Can't redefine: %s", shorten(r.known.named.name.full))
		}
	}
	d := defaultChecker{}
	for _, f := range p.defaults {
		if err := d.check(f); err != nil {
			return err
		}
	}
	p.unresolved, p.unions, p.defaults, p.redefined = nil, nil, nil, nil
	return nil
}

// schema reads the schema v in the given namespace into *place.
func (p *parser) schema(v *jsontree.Value, space string, location **node) error {
	switch v.Kind {
	case jsontree.String:
		return p.reference(v.Text, space, location)
	case jsontree.Array:
		return p.union(v, space, location)
	case jsontree.Object:
		return p.object(v, space, location)
	}
	return invalid("Schema not yet supported: %s", quoted(v))
}

// reference reads a type given by name. As in Java, a name without dots is looked up in the
// enclosing namespace first and in the null namespace second; a type that is defined later
// is found only in the enclosing namespace.
func (p *parser) reference(name, space string, location **node) error {
	if k, ok := primitiveKind(name); ok {
		*location = &node{kind: k}
		return nil
	}
	full := name
	if space != "" && !strings.Contains(name, ".") {
		if err := p.countName(len(space) + 1 + len(name)); err != nil {
			return err
		}
		full = space + "." + name
	}
	switch {
	case p.byName[full] != nil:
		*location = p.byName[full]
	case p.byName[name] != nil:
		*location = p.byName[name]
	default:
		p.unresolved = append(p.unresolved, unresolvedName{location, full})
	}
	return nil
}

// countName limits the memory for full names, because every type inside a long namespace
// inherits it.
func (p *parser) countName(n int) error {
	if p.nameBytes += n; p.nameBytes > maxNameBytes {
		return invalid("full names of the schema are longer than %d bytes together", maxNameBytes)
	}
	return nil
}

// object reads a schema given as a JSON object.
func (p *parser) object(v *jsontree.Value, space string, location **node) error {
	name, ok := v.GetText("type")
	if !ok {
		return invalid("No type: %s", quoted(v))
	}
	switch name {
	case "record", "error":
		return p.record(v, space, name == "error", location)
	case "enum":
		return p.enum(v, space, location)
	case "fixed":
		return p.fixed(v, space, location)
	case "array":
		return p.container(v, space, kindArray, location)
	case "map":
		return p.container(v, space, kindMap, location)
	}
	if k, ok := primitiveKind(name); ok {
		*location = &node{kind: k, props: properties(v, schemaReserved)}
		return nil
	}
	return p.reference(name, space, location)
}

// container reads an array or a map.
func (p *parser) container(v *jsontree.Value, space string, k kind, location **node) error {
	elem := v.Get(elemKey(k))
	if elem == nil {
		return invalid("%s has no %s type: %s", containerName(k), elemKey(k), quoted(v))
	}
	n := &node{kind: k, props: properties(v, schemaReserved)}
	*location = n
	return p.schema(elem, space, &n.elem)
}

// elemKey returns the key of the inner type of an array or a map.
func elemKey(k kind) string {
	if k == kindArray {
		return "items"
	}
	return "values"
}

func containerName(k kind) string {
	if k == kindArray {
		return "Array"
	}
	return "Map"
}

// union reads a union. checkUnion checks its branches when all names are resolved.
func (p *parser) union(v *jsontree.Value, space string, location **node) error {
	n := &node{kind: kindUnion, branches: make([]*node, len(v.List.Values))}
	*location = n
	p.unions = append(p.unions, n)
	for i := range v.List.Values {
		if err := p.schema(&v.List.Values[i], space, &n.branches[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkUnion rejects nested unions and duplicate branches.
func checkUnion(u *node) error {
	seen := make(map[string]struct{}, len(u.branches))
	for _, b := range u.branches {
		u.nullable = u.nullable || b.kind == kindNull
		if b.kind == kindUnion {
			return invalid("Nested union: %s", describe(u))
		}
		key := b.unionKey()
		if _, twice := seen[key]; twice {
			return invalid("Duplicate in union:%s", shorten(key))
		}
		seen[key] = struct{}{}
	}
	return nil
}

// The keys that are not properties, because they have a meaning in Avro for this or another
// kind of type.
var (
	schemaReserved = keySet("doc", "fields", "items", "name", "namespace", "size", "symbols", "values",
		"type", "aliases")
	enumReserved = keySet("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type",
		"aliases", "default")
	fieldReserved = keySet("default", "doc", "name", "order", "type", "aliases")
)

func keySet(keys ...string) map[string]struct{} {
	set := make(map[string]struct{}, len(keys))
	for _, k := range keys {
		set[k] = struct{}{}
	}
	return set
}

// properties returns the members that are not reserved, in their order.
func properties(v *jsontree.Value, reserved map[string]struct{}) []prop {
	var props []prop
	for i, k := range v.List.Keys {
		if _, skip := reserved[k]; !skip {
			props = append(props, prop{k, &v.List.Values[i]})
		}
	}
	return props
}

// optionalText returns a string member, or nil.
func optionalText(v *jsontree.Value, key string) *string {
	if s, ok := v.GetText(key); ok {
		return &s
	}
	return nil
}
