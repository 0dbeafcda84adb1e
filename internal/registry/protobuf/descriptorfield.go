package protobuf

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/descriptorpb"
)

var fieldTypeNames = map[descriptorpb.FieldDescriptorProto_Type]string{
	descriptorpb.FieldDescriptorProto_TYPE_DOUBLE:   "double",
	descriptorpb.FieldDescriptorProto_TYPE_FLOAT:    "float",
	descriptorpb.FieldDescriptorProto_TYPE_INT64:    "int64",
	descriptorpb.FieldDescriptorProto_TYPE_UINT64:   "uint64",
	descriptorpb.FieldDescriptorProto_TYPE_INT32:    "int32",
	descriptorpb.FieldDescriptorProto_TYPE_FIXED64:  "fixed64",
	descriptorpb.FieldDescriptorProto_TYPE_FIXED32:  "fixed32",
	descriptorpb.FieldDescriptorProto_TYPE_BOOL:     "bool",
	descriptorpb.FieldDescriptorProto_TYPE_STRING:   "string",
	descriptorpb.FieldDescriptorProto_TYPE_BYTES:    "bytes",
	descriptorpb.FieldDescriptorProto_TYPE_UINT32:   "uint32",
	descriptorpb.FieldDescriptorProto_TYPE_SFIXED32: "sfixed32",
	descriptorpb.FieldDescriptorProto_TYPE_SFIXED64: "sfixed64",
	descriptorpb.FieldDescriptorProto_TYPE_SINT32:   "sint32",
	descriptorpb.FieldDescriptorProto_TYPE_SINT64:   "sint64",
}

// typeNameOf returns the type of a field as text. A descriptor with a type name may have no
// type.
func typeNameOf(fld *descriptorpb.FieldDescriptorProto) string {
	if name := fld.GetTypeName(); name != "" {
		return name
	}
	return fieldTypeNames[fld.GetType()]
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// groupOf returns the message that a group field declares, or nil.
func groupOf(fld *descriptorpb.FieldDescriptorProto,
	siblings []*descriptorpb.DescriptorProto,
) *descriptorpb.DescriptorProto {
	if fld.GetType() != descriptorpb.FieldDescriptorProto_TYPE_GROUP {
		return nil
	}
	name := lastPart(fld.GetTypeName())
	for _, m := range siblings {
		if m.GetName() == name {
			return m
		}
	}
	return nil
}

// mapEntryOf returns the entry type of a map field and marks it in generated. It returns nil
// for other fields.
func mapEntryOf(
	fld *descriptorpb.FieldDescriptorProto, md *descriptorpb.DescriptorProto, generated map[string]bool,
) *descriptorpb.DescriptorProto {
	if fld.GetLabel() != descriptorpb.FieldDescriptorProto_LABEL_REPEATED || fld.GetTypeName() == "" {
		return nil
	}
	name := lastPart(fld.GetTypeName())
	if name != mapEntryName(fld.GetName()) {
		return nil
	}
	for _, m := range md.GetNestedType() {
		if m.GetName() == name && m.GetOptions().GetMapEntry() && len(m.GetField()) == 2 {
			generated[name] = true
			return m
		}
	}
	return nil
}

func (d *descriptorReader) label(fld *descriptorpb.FieldDescriptorProto) label {
	switch fld.GetLabel() {
	case descriptorpb.FieldDescriptorProto_LABEL_REPEATED:
		return labelRepeated
	case descriptorpb.FieldDescriptorProto_LABEL_REQUIRED:
		return labelRequired
	}
	switch d.syntax {
	case "editions":
		return labelNone
	case "proto3":
		if fld.GetProto3Optional() {
			return labelOptional
		}
		return labelNone
	}
	if fld.OneofIndex != nil {
		return labelNone
	}
	return labelOptional
}

func (d *descriptorReader) field(fld *descriptorpb.FieldDescriptorProto, entry *descriptorpb.DescriptorProto) *field {
	f := &field{
		name: fld.GetName(), tag: int64(fld.GetNumber()), typ: typeNameOf(fld), options: d.fieldOptions(fld),
	}
	if entry == nil {
		f.label = d.label(fld)
		return f
	}
	f.key = typeNameOf(entry.GetField()[0])
	f.typ = typeNameOf(entry.GetField()[1])
	return f
}

func (d *descriptorReader) group(fld *descriptorpb.FieldDescriptorProto, order int,
	body *descriptorpb.DescriptorProto,
) *group {
	return &group{
		label: d.label(fld), tag: int64(fld.GetNumber()), options: d.fieldOptions(fld), body: d.messageAt(order, body),
	}
}

// fieldOptions returns the options of a field, with default and json_name. It omits a
// json_name that equals the derived one, because protoc sets it for every field.
func (d *descriptorReader) fieldOptions(fld *descriptorpb.FieldDescriptorProto) []option {
	options := d.options(fld.GetOptions())
	if fld.DefaultValue != nil && d.syntax != "proto3" {
		options = append(options, option{name: []namePart{{name: "default"}}, val: defaultValue(fld)})
	}
	if fld.JsonName != nil && fld.GetJsonName() != jsonName(fld.GetName()) {
		options = append(options, option{
			name: []namePart{{name: "json_name"}}, val: value{kind: valueString, text: fld.GetJsonName()},
		})
	}
	return options
}

func defaultValue(fld *descriptorpb.FieldDescriptorProto) value {
	text := fld.GetDefaultValue()
	switch fld.GetType() {
	case descriptorpb.FieldDescriptorProto_TYPE_STRING:
		return value{kind: valueString, text: text}
	case descriptorpb.FieldDescriptorProto_TYPE_BYTES:
		return value{kind: valueString, text: unescape(text)}
	default:
		return value{kind: valueIdent, text: text}
	}
}

// jsonName returns the JSON name that protoc derives from a field's name.
func jsonName(name string) string { return camelCase(name, false) }

// camelCase removes underscores and starts each word after one with a capital letter, and the
// first word too if upper is set.
func camelCase(name string, upper bool) string {
	var b strings.Builder
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
	return b.String()
}

// unescape decodes the C escapes in a default of type bytes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if at := strings.IndexByte(`abfnrtv`, s[i]); at >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v"[at])
			continue
		}
		digits := len(s[i:]) - len(strings.TrimLeft(s[i:], "01234567"))
		if digits == 0 {
			b.WriteByte(s[i])
			continue
		}
		digits = min(digits, 3)
		if c, err := strconv.ParseUint(s[i:i+digits], 8, 8); err == nil {
			b.WriteByte(byte(c))
		}
		i += digits - 1
	}
	return b.String()
}
