package avro

import (
	"math"
	"strconv"
	"strings"

	"freshet/internal/registry/jsontree"
)

// define begins a named type: it reads the attributes that all named types have and registers
// the name, so that a record can refer to itself. The caller fills in the returned node,
// which differs from *place if a reference already defines the type.
func (p *parser) define(v *jsontree.Value, k kind, space string, location **node) (*node, error) {
	if s, ok := v.GetText("namespace"); ok {
		space = s
	}
	text, ok := v.GetText("name")
	if !ok {
		return nil, invalid("No name in schema: %s", quoted(v))
	}
	if err := p.countName(len(space) + len(text)); err != nil {
		return nil, err
	}
	name, err := newTypeName(text, space)
	if err != nil {
		return nil, err
	}
	if _, primitive := primitiveKind(name.full); primitive {
		return nil, invalid("Schemas may not be named after primitives: %s", name.full)
	}
	if err := name.validateSpace(); err != nil {
		return nil, err
	}
	n := &node{kind: k, named: &named{name: name, doc: optionalText(v, "doc")}}
	if n.named.aliases, err = p.aliases(v, name); err != nil {
		return nil, err
	}
	return n, p.put(n, location)
}

// put registers a named type.
func (p *parser) put(n *node, location **node) error {
	full := n.named.name.full
	known := p.byName[full]
	if known == nil {
		p.byName[full] = n
		p.types = append(p.types, n)
		p.defined = append(p.defined, n)
		*location = n
		return nil
	}
	if _, foreign := p.foreign[full]; !foreign {
		return invalid("Can't redefine: %s", shorten(full))
	}
	p.redefined = append(p.redefined, redefinedTypes{known, n})
	*location = known
	return nil
}

// aliases reads the aliases of a named type, without duplicates.
func (p *parser) aliases(v *jsontree.Value, of typeName) ([]typeName, error) {
	texts, err := aliasTexts(v)
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	var names []typeName
	seen := make(map[string]struct{}, len(texts))
	for _, text := range texts {
		if err := p.countName(len(of.space) + len(text)); err != nil {
			return nil, err
		}
		name, err := newTypeName(text, of.space)
		if err != nil {
			return nil, err
		}
		if _, twice := seen[name.full]; !twice {
			seen[name.full] = struct{}{}
			names = append(names, name)
		}
	}
	return names, nil
}

// aliasTexts reads the aliases of a type or a field, without duplicates.
func aliasTexts(v *jsontree.Value) ([]string, error) {
	list := v.Get("aliases")
	if list == nil {
		return nil, nil
	}
	if list.Kind != jsontree.Array {
		return nil, invalid("aliases not an array: %s", quoted(v))
	}
	var texts []string
	seen := make(map[string]struct{}, len(list.List.Values))
	for i := range list.List.Values {
		alias := &list.List.Values[i]
		if alias.Kind != jsontree.String {
			return nil, invalid("alias not a string: %s", quoted(alias))
		}
		if _, twice := seen[alias.Text]; !twice {
			seen[alias.Text] = struct{}{}
			texts = append(texts, alias.Text)
		}
	}
	return texts, nil
}

// record reads a record, or an error, which is a record under another name.
func (p *parser) record(v *jsontree.Value, space string, isError bool, location **node) error {
	n, err := p.define(v, kindRecord, space, location)
	if err != nil {
		return err
	}
	n.named.isError = isError
	n.props = properties(v, schemaReserved)
	fields := v.Get("fields")
	if fields == nil || fields.Kind != jsontree.Array {
		return invalid("Record has no fields: %s", quoted(v))
	}
	n.named.fields = make([]*field, 0, len(fields.List.Values))
	n.named.byName = make(map[string]*field, len(fields.List.Values))
	for i := range fields.List.Values {
		f, err := p.field(&fields.List.Values[i], n.named.name.space)
		if err != nil {
			return err
		}
		f.pos = i
		if other := n.named.byName[f.name]; other != nil {
			return invalid("Duplicate field %s in record %s: %s and %s.",
				shorten(f.name), shorten(n.named.name.full), f, other)
		}
		n.named.byName[f.name] = f
		n.named.fields = append(n.named.fields, f)
	}
	return nil
}

// field reads a field of a record in the given namespace.
func (p *parser) field(v *jsontree.Value, space string) (*field, error) {
	name, ok := v.GetText("name")
	if !ok {
		return nil, invalid("No field name: %s", quoted(v))
	}
	if err := validateName(name); err != nil {
		return nil, err
	}
	f := &field{name: name, doc: optionalText(v, "doc"), props: properties(v, fieldReserved)}
	t := v.Get("type")
	if t == nil {
		return nil, invalid("No field type: %s", quoted(v))
	}
	err := p.schema(t, space, &f.node)
	if err != nil {
		return nil, err
	}
	if f.order, err = fieldOrder(v); err != nil {
		return nil, err
	}
	if f.aliases, err = aliasTexts(v); err != nil {
		return nil, err
	}
	if f.def, err = fieldDefault(v, f); err != nil {
		return nil, err
	}
	if f.def != nil {
		p.defaults = append(p.defaults, f)
	}
	return f, nil
}

// fieldDefault returns the default of a field, or nil. As in Java, the default of a float or
// double may be a string that contains a number.
func fieldDefault(v *jsontree.Value, f *field) (*jsontree.Value, error) {
	def := v.Get("default")
	if def == nil || def.Kind != jsontree.String || f.node == nil || f.node.kind != kindFloat &&
		f.node.kind != kindDouble {
		return def, nil
	}
	number, ok := javaParseDouble(def.Text)
	if !ok {
		return nil, invalid("Invalid default for field %s: %s not a %q", shorten(f.name), quoted(def), f.node.kind)
	}
	return doubleValue(number), nil
}

// fieldOrder reads the sort order of a field, ignoring case.
func fieldOrder(v *jsontree.Value) (order, error) {
	o := v.Get("order")
	if o == nil {
		return ascending, nil
	}
	for i, name := range orderNames {
		if o.Kind == jsontree.String && strings.EqualFold(o.Text, name) {
			return order(i), nil
		}
	}
	return ascending, invalid("Invalid order of a field: %s", quoted(o))
}

// enum reads an enumeration.
func (p *parser) enum(v *jsontree.Value, space string, location **node) error {
	n, err := p.define(v, kindEnum, space, location)
	if err != nil {
		return err
	}
	n.props = properties(v, enumReserved)
	symbols := v.Get("symbols")
	if symbols == nil || symbols.Kind != jsontree.Array {
		return invalid("Enum has no symbols: %s", quoted(v))
	}
	n.named.symbols = make([]string, 0, len(symbols.List.Values))
	n.named.bySymbol = make(map[string]int, len(symbols.List.Values))
	for i := range symbols.List.Values {
		symbol := &symbols.List.Values[i]
		if symbol.Kind != jsontree.String {
			return invalid("Null name")
		}
		if err := validateName(symbol.Text); err != nil {
			return err
		}
		if _, twice := n.named.bySymbol[symbol.Text]; twice {
			return invalid("Duplicate enum symbol: %s", shorten(symbol.Text))
		}
		n.named.bySymbol[symbol.Text] = i
		n.named.symbols = append(n.named.symbols, symbol.Text)
	}
	if def := optionalText(v, "default"); def != nil {
		if _, ok := n.named.bySymbol[*def]; !ok {
			return invalid("The Enum Default: %s is not in the enum symbol set: %s",
				shorten(*def), shorten("["+strings.Join(n.named.symbols, ", ")+"]"))
		}
		n.named.enumDefault = def
	}
	return nil
}

// maxFixedSize is the largest array that Java virtual machines support.
const maxFixedSize = math.MaxInt32 - 8

// fixed reads a type of a fixed number of bytes.
func (p *parser) fixed(v *jsontree.Value, space string, location **node) error {
	n, err := p.define(v, kindFixed, space, location)
	if err != nil {
		return err
	}
	n.props = properties(v, schemaReserved)
	size := v.Get("size")
	if size == nil || !fits32(size) {
		return invalid("Invalid or no size: %s", quoted(v))
	}
	n.named.size, _ = strconv.Atoi(size.Text) // fits32 has checked it
	if n.named.size < 0 {
		return invalid("Malformed data. Length is negative: %d", n.named.size)
	}
	if n.named.size > maxFixedSize {
		return invalid("Cannot read arrays longer than %d bytes", maxFixedSize)
	}
	return nil
}
