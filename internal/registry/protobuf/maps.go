package protobuf

import (
	"slices"
	"strings"
)

// foldMaps turns maps that were spelled out as repeated fields of an entry
// message back into map fields. That spelling is illegal in Protobuf, and it is
// what Java's serializer sends, because it prints descriptors, where a map has
// no other form. It returns f itself when there is nothing to fold.
func foldMaps(f *file) *file {
	if !slices.ContainsFunc(f.messages, hasMapEntry) {
		return f
	}
	local := &source{path: rootPath, model: f}
	local.visible = []*source{local}
	out := *f
	out.messages = nil
	for _, m := range f.messages {
		out.messages = append(out.messages, foldMessage(local, f.pkg, m))
	}
	return &out
}

func hasMapEntry(m *message) bool {
	return m.mapEntry() || slices.ContainsFunc(m.messages, hasMapEntry)
}

func foldMessage(local *source, outer string, m *message) *message {
	if !slices.ContainsFunc(m.messages, hasMapEntry) {
		return m
	}
	scope := qualify(outer, m.name)
	out := *m
	out.fields, out.messages = slices.Clone(m.fields), nil
	for _, nested := range m.messages {
		if !foldEntry(local, scope, out.fields, nested) {
			out.messages = append(out.messages, foldMessage(local, scope, nested))
		}
	}
	return &out
}

// foldEntry replaces the field that entry belongs to. An entry that does not
// look exactly like the one protoc would make is left for protoc to refuse.
func foldEntry(local *source, scope string, fields []*field, entry *message) bool {
	if !entry.mapEntry() || len(entry.options) != 1 || len(entry.fields) != 2 {
		return false
	}
	if len(entry.oneofs)+len(entry.groups)+len(entry.messages)+len(entry.enums)+len(entry.extends)+
		len(entry.extensions)+len(entry.reserved) > 0 {
		return false
	}
	key, val := entry.fields[0], entry.fields[1]
	if key.name != "key" || key.tag != 1 || val.name != "value" || val.tag != 2 ||
		key.isMap() || val.isMap() || key.label > labelOptional || val.label > labelOptional ||
		len(key.options)+len(val.options) > 0 {
		return false
	}
	for i, f := range fields {
		if f.isMap() || f.label != labelRepeated || mapEntryName(f.name) != entry.name {
			continue
		}
		if s := local.resolveType(scope, f.typ); s == nil || s.message != entry {
			continue
		}
		folded := *f
		folded.label, folded.key, folded.typ = labelNone, key.typ, val.typ
		fields[i] = &folded
		return true
	}
	return false
}

// mapEntryName is the name that protoc gives to the entry type of a map field.
func mapEntryName(name string) string {
	var b strings.Builder
	upper := true
	for i := range len(name) {
		c := name[i]
		if c == '_' {
			upper = true
			continue
		}
		if upper && c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper = false
		b.WriteByte(c)
	}
	return b.String() + "Entry"
}
