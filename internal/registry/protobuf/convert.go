package protobuf

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile/ast"
)

// converter converts protocompile's syntax tree to the model. It rejects only what the model
// cannot represent; the linker checks the rest.
type converter struct {
	tree   *ast.FileNode
	custom bool
	values int // number of option values and their parts
	err    error
}

func convert(tree *ast.FileNode) (*file, error) {
	c := &converter{tree: tree}
	f := &file{}
	if tree.Syntax != nil {
		f.syntax = tree.Syntax.Syntax.AsString()
	}
	if tree.Edition != nil {
		f.edition = tree.Edition.Edition.AsString()
	}
	types := 0
	for _, decl := range tree.Decls {
		switch decl := decl.(type) {
		case *ast.PackageNode:
			f.pkg = string(decl.Name.AsIdentifier())
		case *ast.ImportNode:
			f.imports = append(f.imports, c.importDecl(decl))
		case *ast.OptionNode:
			f.options = append(f.options, c.option(decl))
		case *ast.MessageNode:
			f.messages = append(f.messages, indexedMessage(&types, c.message(decl.Name.Val, decl.Decls)))
		case *ast.EnumNode:
			f.enums = append(f.enums, c.enum(decl))
		case *ast.ExtendNode:
			f.extends = append(f.extends, c.extend(decl, &types))
		case *ast.ServiceNode:
			f.services = append(f.services, c.service(decl))
		}
	}
	f.custom = c.custom
	return f, c.err
}

// positionOf returns the position of a node. It is expensive, because it counts columns from
// the start of the line.
func positionOf(tree *ast.FileNode, n ast.Node) position {
	start := tree.NodeInfo(n).Start()
	return position{line: start.Line, col: start.Col}
}

// fail records the first error.
func (c *converter) fail(n ast.Node, text string) {
	if c.err == nil {
		c.err = invalidAt(positionOf(c.tree, n), text)
	}
}

func (c *converter) importDecl(n *ast.ImportNode) importDecl {
	decl := importDecl{path: n.Name.AsString()}
	switch {
	case n.Public != nil:
		decl.kind = importPublic
	case n.Weak != nil:
		decl.kind = importWeak
	}
	return decl
}

func (c *converter) message(name string, decls []ast.MessageElement) *message {
	m := &message{name: name}
	types := 0
	for _, decl := range decls {
		switch decl := decl.(type) {
		case *ast.OptionNode:
			m.options = append(m.options, c.option(decl))
		case *ast.FieldNode:
			m.fields = append(m.fields, c.field(decl))
		case *ast.MapFieldNode:
			m.fields = append(m.fields, c.mapField(decl))
		case *ast.GroupNode:
			m.groups = append(m.groups, c.group(decl, &types))
		case *ast.OneofNode:
			m.oneofs = append(m.oneofs, c.oneof(decl, &types))
		case *ast.MessageNode:
			m.messages = append(m.messages, indexedMessage(&types, c.message(decl.Name.Val, decl.Decls)))
		case *ast.EnumNode:
			m.enums = append(m.enums, c.enum(decl))
		case *ast.ExtendNode:
			m.extends = append(m.extends, c.extend(decl, &types))
		case *ast.ExtensionRangeNode:
			m.extensions = append(m.extensions, extensionRange{
				ranges:  c.ranges(decl.Ranges, maxFieldTag),
				options: c.compact(decl.Options),
			})
		case *ast.ReservedNode:
			m.reserved = append(m.reserved, c.reserved(decl, maxFieldTag))
		}
	}
	return m
}

func (c *converter) field(n *ast.FieldNode) *field {
	return &field{
		label:   labelOf(n.Label),
		typ:     string(n.FldType.AsIdentifier()),
		name:    n.Name.Val,
		tag:     c.tag(n, n.Tag),
		options: specialLast(c.compact(n.Options)),
	}
}

func (c *converter) mapField(n *ast.MapFieldNode) *field {
	return &field{
		key:     n.MapType.KeyType.Val,
		typ:     string(n.MapType.ValueType.AsIdentifier()),
		name:    n.Name.Val,
		tag:     c.tag(n, n.Tag),
		options: specialLast(c.compact(n.Options)),
	}
}

// indexedMessage assigns the next index among its siblings to a message.
func indexedMessage(types *int, m *message) *message {
	m.order = *types
	*types++
	return m
}

func (c *converter) group(n *ast.GroupNode, types *int) *group {
	return &group{
		label:   labelOf(n.Label),
		tag:     c.tag(n, n.Tag),
		options: specialLast(c.compact(n.Options)),
		body:    indexedMessage(types, c.message(n.Name.Val, n.Decls)),
	}
}

func labelOf(l ast.FieldLabel) label {
	switch {
	case !l.IsPresent():
		return labelNone
	case l.Repeated:
		return labelRepeated
	case l.Required:
		return labelRequired
	default:
		return labelOptional
	}
}

func (c *converter) tag(n ast.Node, tag *ast.UintLiteralNode) int64 {
	if tag == nil {
		c.fail(n, "missing field tag number")
		return 0
	}
	number, ok := tag.AsInt64()
	if !ok {
		c.fail(tag, "field tag number is out of range")
	}
	return number
}

func (c *converter) oneof(n *ast.OneofNode, types *int) *oneof {
	o := &oneof{name: n.Name.Val}
	for _, decl := range n.Decls {
		switch decl := decl.(type) {
		case *ast.OptionNode:
			o.options = append(o.options, c.option(decl))
		case *ast.FieldNode:
			o.fields = append(o.fields, c.field(decl))
		case *ast.GroupNode:
			o.groups = append(o.groups, c.group(decl, types))
		}
	}
	return o
}

func (c *converter) enum(n *ast.EnumNode) *enum {
	e := &enum{name: n.Name.Val}
	for _, decl := range n.Decls {
		switch decl := decl.(type) {
		case *ast.OptionNode:
			e.options = append(e.options, c.option(decl))
		case *ast.EnumValueNode:
			number, ok := decl.Number.AsInt64()
			if !ok {
				c.fail(decl.Number, "enum number is out of range")
			}
			e.values = append(e.values, enumValue{
				name: decl.Name.Val, number: number, options: c.compact(decl.Options),
			})
		case *ast.ReservedNode:
			e.reserved = append(e.reserved, c.reserved(decl, maxEnumNumber))
		}
	}
	return e
}

func (c *converter) extend(n *ast.ExtendNode, types *int) *extend {
	e := &extend{extendee: string(n.Extendee.AsIdentifier())}
	for _, decl := range n.Decls {
		switch decl := decl.(type) {
		case *ast.FieldNode:
			e.fields = append(e.fields, c.field(decl))
		case *ast.GroupNode:
			e.groups = append(e.groups, c.group(decl, types))
		}
	}
	return e
}

func (c *converter) service(n *ast.ServiceNode) *service {
	s := &service{name: n.Name.Val}
	for _, decl := range n.Decls {
		switch decl := decl.(type) {
		case *ast.OptionNode:
			s.options = append(s.options, c.option(decl))
		case *ast.RPCNode:
			s.methods = append(s.methods, c.method(decl))
		}
	}
	return s
}

func (c *converter) method(n *ast.RPCNode) *method {
	m := &method{
		name:          n.Name.Val,
		input:         string(n.Input.MessageType.AsIdentifier()),
		output:        string(n.Output.MessageType.AsIdentifier()),
		clientStreams: n.Input.Stream != nil,
		serverStreams: n.Output.Stream != nil,
	}
	for _, decl := range n.Decls {
		if decl, ok := decl.(*ast.OptionNode); ok {
			m.options = append(m.options, c.option(decl))
		}
	}
	return m
}

func (c *converter) reserved(n *ast.ReservedNode, limit int64) reserved {
	r := reserved{ranges: c.ranges(n.Ranges, limit)}
	for _, name := range n.Names {
		r.names = append(r.names, name.AsString())
	}
	for _, name := range n.Identifiers {
		r.names = append(r.names, name.Val)
		r.idents = true
	}
	return r
}

func (c *converter) ranges(nodes []*ast.RangeNode, limit int64) []tagRange {
	ranges := make([]tagRange, 0, len(nodes))
	for _, n := range nodes {
		start, ok := n.StartVal.AsInt64()
		if !ok {
			c.fail(n, "range start is out of range")
		}
		r := tagRange{start: start, end: start, single: n.EndVal == nil && n.Max == nil}
		switch {
		case n.Max != nil:
			r.end = limit
		case n.EndVal != nil:
			if r.end, ok = n.EndVal.AsInt64(); !ok {
				c.fail(n, "range end is out of range")
			}
		}
		ranges = append(ranges, r)
	}
	return ranges
}

func (c *converter) compact(n *ast.CompactOptionsNode) []option {
	if n == nil {
		return nil
	}
	options := make([]option, 0, len(n.Options))
	for _, o := range n.Options {
		options = append(options, c.option(o))
	}
	return options
}

// specialLast moves default and json_name behind the options of a field. They look like
// options but are attributes of the field, and are printed last.
func specialLast(options []option) []option {
	slices.SortStableFunc(options, func(a, b option) int { return cmp.Compare(a.rank(), b.rank()) })
	return options
}

func (o option) rank() int {
	switch {
	case o.plain("json_name"):
		return 2
	case o.plain("default"):
		return 1
	default:
		return 0
	}
}

func (c *converter) option(n *ast.OptionNode) option {
	o := option{name: make([]namePart, 0, len(n.Name.Parts))}
	for _, part := range n.Name.Parts {
		o.name = append(o.name, namePart{name: string(part.Name.AsIdentifier()), ext: part.IsExtension()})
		c.custom = c.custom || part.IsExtension()
	}
	o.val = c.value(n.Val)
	return o
}

func (c *converter) value(n ast.ValueNode) value {
	if c.values++; c.values > maxOptionValues {
		c.fail(n, "too many option values")
		return value{}
	}
	switch n := n.(type) {
	case ast.StringValueNode:
		return value{kind: valueString, text: n.AsString()}
	case *ast.UintLiteralNode, *ast.FloatLiteralNode:
		return value{kind: valueNumber, text: c.raw(n)}
	case *ast.NegativeIntLiteralNode:
		return value{kind: valueNumber, text: "-" + c.raw(n.Uint)}
	case *ast.SignedFloatLiteralNode:
		kind := valueNumber
		if _, word := n.Float.(*ast.SpecialFloatLiteralNode); word {
			kind = valueIdent
		}
		return value{kind: kind, text: string(n.Sign.Rune) + c.raw(n.Float)}
	case *ast.ArrayLiteralNode:
		v := value{kind: valueList}
		for _, e := range n.Elements {
			v.list = append(v.list, c.value(e))
		}
		return v
	case *ast.MessageLiteralNode:
		return c.literal(n)
	case ast.IdentValueNode:
		return value{kind: valueIdent, text: string(n.AsIdentifier())}
	default:
		c.fail(n, "unsupported option value")
		return value{}
	}
}

// literal merges repeated occurrences of a field into one list, which has the same meaning
// and is printed so in the canonical layout.
func (c *converter) literal(n *ast.MessageLiteralNode) value {
	v := value{kind: valueMessage}
	at := make(map[string]int, len(n.Elements))
	for _, e := range n.Elements {
		f := literalField{
			name: string(e.Name.Name.AsIdentifier()),
			ext:  e.Name.IsExtension(),
			val:  c.value(e.Val),
		}
		c.custom = c.custom || f.ext
		if e.Name.IsAnyTypeReference() {
			f.url = string(e.Name.URLPrefix.AsIdentifier())
		}
		i, again := at[f.key()]
		if !again {
			at[f.key()] = len(v.fields)
			v.fields = append(v.fields, f)
			continue
		}
		v.fields[i].val = appendValue(v.fields[i].val, f.val)
	}
	return v
}

// appendValue joins two values of one repeated field.
func appendValue(a, b value) value {
	if a.kind != valueList {
		a = value{kind: valueList, list: []value{a}}
	}
	if b.kind != valueList {
		return value{kind: valueList, list: append(a.list, b)}
	}
	return value{kind: valueList, list: append(a.list, b.list...)}
}

// raw returns the original text of a number or word.
func (c *converter) raw(n ast.Node) string { return strings.TrimSpace(c.tree.NodeInfo(n).RawText()) }
