package protobuf

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// normalize returns the model of the normalized text: with full type names, and sorted
// wherever the order has no meaning. Messages, services and methods keep their order, because
// records contain the index of their message.
func normalize(src *source) *file {
	n := &normalizer{src: src}
	r := rewriter{options: n.options, typeName: n.typeName, arrange: true}
	return r.file(src.model)
}

type normalizer struct{ src *source }

func (n *normalizer) typeName(scope, name string) string {
	if scalarTypes[name] {
		return name
	}
	if s := n.src.resolveType(scope, name); s != nil {
		return "." + s.name
	}
	return name
}

var scalarTypes = map[string]bool{
	"double": true, "float": true, "int32": true, "int64": true, "uint32": true, "uint64": true,
	"sint32": true, "sint64": true, "fixed32": true, "fixed64": true, "sfixed32": true, "sfixed64": true,
	"bool": true, "string": true, "bytes": true,
}

func arrangeFile(f *file) {
	if f.syntax == "proto2" {
		f.syntax = "" // proto2 is the default
	}
	if f.empty() {
		f.syntax = "proto2" // an empty text would not be a schema
	}
	imports := slices.Clone(f.imports)
	slices.SortStableFunc(imports, func(a, b importDecl) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.kind, b.kind))
	})
	f.imports = slices.CompactFunc(imports, func(a, b importDecl) bool {
		return a.path == b.path && a.kind == b.kind
	})
}

func arrangeMessage(m *message) {
	m.reserved = arrangeReserved(m.reserved)
	m.extensions = arrangeExtensions(m.extensions)
	// Groups keep their order, because they are messages too.
	sortFields(m.fields)
	for _, o := range m.oneofs {
		sortFields(o.fields)
	}
	slices.SortStableFunc(m.oneofs, func(a, b *oneof) int {
		return cmp.Compare(a.lowestTag(), b.lowestTag())
	})
}

func (o *oneof) lowestTag() int64 {
	lowest := int64(math.MaxInt64)
	for _, f := range o.fields {
		lowest = min(lowest, f.tag)
	}
	for _, g := range o.groups {
		lowest = min(lowest, g.tag)
	}
	return lowest
}

func sortFields(fields []*field) {
	slices.SortStableFunc(fields, func(a, b *field) int { return cmp.Compare(a.tag, b.tag) })
}

// arrangeReserved returns one statement for each range and each name, ranges first.
func arrangeReserved(statements []reserved) []reserved {
	var ranges []tagRange
	var names []string
	idents := false
	for _, r := range statements {
		ranges = append(ranges, r.ranges...)
		names = append(names, r.names...)
		idents = idents || r.idents
	}
	slices.SortFunc(ranges, compareRanges)
	slices.Sort(names)
	var out []reserved
	for _, r := range ranges {
		r.single = r.start == r.end
		out = append(out, reserved{ranges: []tagRange{r}})
	}
	for _, name := range slices.Compact(names) {
		out = append(out, reserved{names: []string{name}, idents: idents})
	}
	return out
}

func compareRanges(a, b tagRange) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
}

func arrangeExtensions(statements []extensionRange) []extensionRange {
	var out []extensionRange
	for _, e := range statements {
		for _, r := range e.ranges {
			r.single = r.start == r.end
			out = append(out, extensionRange{ranges: []tagRange{r}, options: e.options})
		}
	}
	slices.SortStableFunc(out, func(a, b extensionRange) int { return compareRanges(a.ranges[0], b.ranges[0]) })
	return out
}

// arrangeEnum sorts values by number, then name.
//
// Quirk: in a closed enum this can change the first value, and with it the default of fields
// without an explicit default. Confluent Schema Registry uses this order, so the normalized
// text does too. Zero is always first, because proto3 requires it.
func arrangeEnum(e *enum) {
	e.reserved = arrangeReserved(e.reserved)
	slices.SortStableFunc(e.values, func(a, b enumValue) int {
		return cmp.Or(
			boolCompare(a.number == 0, b.number == 0),
			cmp.Compare(a.number, b.number),
			cmp.Compare(a.name, b.name),
		)
	})
}

// boolCompare orders true before false.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// arrangeExtends joins the blocks that extend the same type, at the position of the first.
// Blocks with groups keep their positions, because groups are messages.
func arrangeExtends(extends []*extend) []*extend {
	var out []*extend
	at := map[string]*extend{}
	for _, e := range extends {
		if len(e.groups) > 0 {
			out = append(out, e)
			continue
		}
		if first := at[e.extendee]; first != nil {
			first.fields = append(first.fields, e.fields...)
			continue
		}
		at[e.extendee] = e
		out = append(out, e)
	}
	for _, e := range out {
		sortFields(e.fields)
	}
	return out
}

// options sorts options by name and joins those that set parts of one message.
func (n *normalizer) options(scope string, options []option) []option {
	var out []option
	joined := map[string]int{} // positions in out of extensions that are a single message
	for _, o := range options {
		ext := n.extension(scope, o)
		if ext == nil || !n.nestable(scope, o) {
			out = append(out, option{name: o.name, val: n.value(o.val)})
			continue
		}
		val := n.nest(scope, o.name[1:], o.val)
		if i, again := joined[ext.name]; again {
			out[i].val = n.join(out[i].val, val, n.messageOf(ext))
			continue
		}
		if n.isSingleMessage(ext) {
			joined[ext.name] = len(out)
		}
		out = append(out, option{name: []namePart{{name: n.extensionName(scope, ext), ext: true}}, val: val})
	}
	for i := range out {
		out[i].val = tidy(out[i].val)
	}
	slices.SortStableFunc(out, func(a, b option) int {
		return cmp.Or(cmp.Compare(a.sortName(), b.sortName()), cmp.Compare(a.formattedName(), b.formattedName()))
	})
	return out
}

// sortName returns the name without parentheses and leading dots.
func (o option) sortName() string {
	parts := make([]string, len(o.name))
	for i, part := range o.name {
		parts[i] = strings.TrimPrefix(part.name, ".")
	}
	return strings.Join(parts, ".")
}
