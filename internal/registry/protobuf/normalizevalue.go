package protobuf

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// extension returns the extension that o sets, or nil if o is a built-in option or its
// extension is unknown.
func (n *normalizer) extension(scope string, o option) *symbol {
	if !o.name[0].ext {
		return nil
	}
	return n.src.resolveExtension(scope, o.name[0].name)
}

// extensionName returns the full name of an extension, with a leading dot if it would resolve
// to another extension without it.
func (n *normalizer) extensionName(scope string, ext *symbol) string {
	if n.src.resolveExtension(scope, ext.name) == ext {
		return ext.name
	}
	return "." + ext.name
}

// nestable reports whether the parts of o's name can be keys of a message literal, in which
// the names of extensions are relative to the package and have no leading dot.
func (n *normalizer) nestable(scope string, o option) bool {
	for _, part := range o.name[1:] {
		if !part.ext {
			continue
		}
		s := n.src.resolveExtension(scope, part.name)
		if s == nil || n.src.resolveExtension(n.src.model.pkg, s.name) != s {
			return false
		}
	}
	return true
}

// isSingleMessage reports whether an extension is a single message, whose fields can be set
// by separate options.
func (n *normalizer) isSingleMessage(ext *symbol) bool {
	if ext.extGrp != nil {
		return ext.extGrp.label != labelRepeated
	}
	return ext.ext.label != labelRepeated && n.messageOf(ext) != nil
}

// messageOf returns the message type of an extension, or nil.
func (n *normalizer) messageOf(ext *symbol) *symbol {
	switch {
	case ext == nil:
		return nil
	case ext.extGrp != nil:
		return ext.file.find(qualify(ext.scope, ext.extGrp.body.name))
	case scalarTypes[ext.ext.typ]:
		return nil
	}
	s := ext.file.resolveType(ext.scope, ext.ext.typ)
	if s == nil || s.message == nil {
		return nil
	}
	return s
}

// fieldOf finds a field of a message by name.
func (n *normalizer) fieldOf(typ *symbol, name string) *field {
	if typ == nil {
		return nil
	}
	for f := range typ.message.allFields() {
		if f.name == name {
			return f
		}
	}
	return nil
}

// allFields iterates over the fields and the members of oneofs, without groups.
func (m *message) allFields() func(yield func(*field) bool) {
	return func(yield func(*field) bool) {
		for _, f := range m.fields {
			if !yield(f) {
				return
			}
		}
		for _, o := range m.oneofs {
			for _, f := range o.fields {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// fieldType returns the message type of a field of typ, or nil.
func (n *normalizer) fieldType(typ *symbol, f *field) *symbol {
	if f == nil || f.isMap() || scalarTypes[f.typ] {
		return nil
	}
	if s := typ.file.resolveType(typ.name, f.typ); s != nil && s.message != nil {
		return s
	}
	return nil
}

// nest converts `.a.b = v` to {a: {b: v}}.
func (n *normalizer) nest(scope string, path []namePart, v value) value {
	if len(path) == 0 {
		return n.value(v)
	}
	inner := literalField{name: path[0].name, ext: path[0].ext}
	if inner.ext {
		if s := n.src.resolveExtension(scope, inner.name); s != nil {
			inner.name = s.name
		}
	}
	inner.val = n.nest(scope, path[1:], v)
	return value{kind: valueMessage, fields: []literalField{inner}}
}

// join merges two values of one option: messages field by field, other values into a list.
func (n *normalizer) join(a, b value, typ *symbol) value {
	if a.kind != valueMessage || b.kind != valueMessage {
		return appendValue(a, b)
	}
	out := value{kind: valueMessage, fields: slices.Clone(a.fields)}
	for _, f := range b.fields {
		i := slices.IndexFunc(out.fields, func(have literalField) bool { return have.key() == f.key() })
		if i < 0 {
			out.fields = append(out.fields, f)
			continue
		}
		if n.single(typ, f) {
			next := n.fieldType(typ, n.fieldOf(typ, f.name))
			if f.ext {
				next = n.messageOf(n.src.find(f.name))
			}
			out.fields[i].val = n.join(out.fields[i].val, f.val, next)
			continue
		}
		out.fields[i].val = appendValue(out.fields[i].val, f.val)
	}
	return out
}

// single reports whether a field of typ is a single message.
func (n *normalizer) single(typ *symbol, f literalField) bool {
	if f.ext {
		s := n.src.find(f.name)
		return s != nil && n.messageOf(s) != nil && (s.ext == nil || s.ext.label != labelRepeated)
	}
	found := n.fieldOf(typ, f.name)
	return found != nil && found.label != labelRepeated && n.fieldType(typ, found) != nil
}

// value normalizes numbers and the names of extensions inside v.
func (n *normalizer) value(v value) value {
	switch v.kind {
	case valueNumber:
		v.text = plainNumber(v.text)
	case valueList:
		list := make([]value, len(v.list))
		for i, e := range v.list {
			list[i] = n.value(e)
		}
		v.list = list
	case valueMessage:
		fields := make([]literalField, len(v.fields))
		for i, f := range v.fields {
			if f.ext {
				f.name = n.literalName(f.name)
			}
			f.val = n.value(f.val)
			fields[i] = f
		}
		v.fields = fields
	}
	return v
}

// literalName returns the full name of an extension that is used as a key. It returns the
// name unchanged if the full name would resolve to another extension, because a key cannot
// have a leading dot.
func (n *normalizer) literalName(name string) string {
	pkg := n.src.model.pkg
	s := n.src.resolveExtension(pkg, name)
	if s == nil || n.src.resolveExtension(pkg, s.name) != s {
		return name
	}
	return s.name
}

// tidy sorts the fields of literals, removes empty lists and replaces lists of one value by
// the value.
func tidy(v value) value {
	switch v.kind {
	case valueList:
		list := make([]value, len(v.list))
		for i, e := range v.list {
			list[i] = tidy(e)
		}
		v.list = list
	case valueMessage:
		var fields []literalField
		for _, f := range v.fields {
			f.val = tidy(f.val)
			if f.val.kind == valueList {
				switch len(f.val.list) {
				case 0:
					continue
				case 1:
					f.val = f.val.list[0]
				}
			}
			fields = append(fields, f)
		}
		slices.SortStableFunc(fields, func(a, b literalField) int { return cmp.Compare(a.key(), b.key()) })
		v.fields = fields
	}
	return v
}

// plainNumber formats a number in decimal, without exponent and redundant zeros, if the
// result is short: 0x1F becomes 31, 1.50E+3 becomes 1500.
func plainNumber(text string) string {
	digits, negative := strings.CutPrefix(text, "-")
	sign := ""
	if negative {
		sign = "-"
	}
	if u, err := strconv.ParseUint(digits, 0, 64); err == nil {
		if u == 0 {
			return "0"
		}
		return sign + strconv.FormatUint(u, 10)
	}
	f, err := strconv.ParseFloat(digits, 64)
	switch {
	case err != nil:
		return text
	case f == 0 && negative:
		return "-0.0" // a float distinguishes it from zero
	case f == 0:
		return "0"
	case len(digits) > 64 || math.Abs(math.Log10(f)) > 18:
		return sign + strconv.FormatFloat(f, 'g', -1, 64)
	}
	exact, ok := new(big.Rat).SetString(digits)
	if !ok {
		return text
	}
	places, _ := exact.FloatPrec()
	return sign + exact.FloatString(places)
}
