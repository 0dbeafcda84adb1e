package protobuf

import (
	"slices"
)

// foldMaps converts repeated fields of an entry message to map fields. Protobuf does not
// allow to write maps in this form, but Confluent's Java serializer sends it, because it
// prints descriptors, which have no other form. foldMaps returns f itself if it has no such
// fields.
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

// foldEntry replaces the field of entry. It returns false for an entry that differs from
// protoc's, which the checks of protoc then reject.
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

// mapEntryName returns protoc's name for the entry type of a map field.
func mapEntryName(name string) string { return camelCase(name, true) + "Entry" }
