package protobuf

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// optionDecoder decodes custom options, which are extensions defined in the linked file.
type optionDecoder struct {
	root  *source
	types linker.Resolver
}

// options lists the options that an options message sets, by field number.
func (d *descriptorReader) options(m proto.Message) []option {
	if m == nil || !m.ProtoReflect().IsValid() {
		return nil
	}
	if d.decoder != nil && hasUnknownBytes(m.ProtoReflect()) {
		m = d.decoder.decode(m)
	}
	var out []option
	for _, set := range setFields(m.ProtoReflect()) {
		name := set.field.Name()
		if !set.field.IsExtension() && (name == "uninterpreted_option" || name == "map_entry") {
			continue
		}
		part := namePart{name: string(name)}
		if set.field.IsExtension() {
			part = namePart{name: d.decoder.extensionName(string(set.field.FullName())), ext: true}
			d.custom = true
		}
		for _, v := range listed(set.field, set.value) {
			if part.name == "features" && v.kind == valueMessage {
				out = append(out, flatten([]namePart{part}, v)...)
				continue
			}
			out = append(out, option{name: []namePart{part}, val: v})
		}
	}
	return out
}

// flatten converts features = {a: b} to features.a = b, the usual notation.
func flatten(path []namePart, v value) []option {
	if v.kind != valueMessage {
		return []option{{name: path, val: v}}
	}
	var out []option
	for _, f := range v.fields {
		out = append(out, flatten(append(slices.Clone(path), namePart{name: f.name, ext: f.ext}), f.val)...)
	}
	return out
}

// decode decodes an options message again with the extensions that are visible to the
// schema. Options that stay unknown cannot be printed.
func (d *optionDecoder) decode(m proto.Message) proto.Message {
	raw, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m)
	if err != nil {
		return m
	}
	decoded := m.ProtoReflect().New().Interface()
	options := proto.UnmarshalOptions{AllowPartial: true, Resolver: d.types, RecursionLimit: maxDepth}
	if err := options.Unmarshal(raw, decoded); err != nil {
		return m
	}
	return decoded
}

// extensionName returns the full name, with a leading dot if it would resolve to another
// extension without it.
func (d *optionDecoder) extensionName(full string) string {
	if d == nil || d.root == nil {
		return full
	}
	if s := d.root.resolveExtension(d.root.model.pkg, full); s != nil && s.name == full {
		return full
	}
	return "." + full
}

type setField struct {
	field protoreflect.FieldDescriptor
	value protoreflect.Value
}

// setFields lists the set fields of m by number.
func setFields(m protoreflect.Message) []setField {
	var fields []setField
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		fields = append(fields, setField{fd, v})
		return true
	})
	slices.SortFunc(fields, func(a, b setField) int { return cmp.Compare(a.field.Number(), b.field.Number()) })
	return fields
}

// listed returns the values of a field: one, or one per element.
func listed(fd protoreflect.FieldDescriptor, v protoreflect.Value) []value {
	switch {
	case fd.IsMap():
		var out []value
		v.Map().Range(func(k protoreflect.MapKey, e protoreflect.Value) bool {
			out = append(out, value{kind: valueMessage, fields: []literalField{
				{name: "key", val: singular(fd.MapKey(), k.Value())},
				{name: "value", val: singular(fd.MapValue(), e)},
			}})
			return true
		})
		slices.SortFunc(out, func(a, b value) int { return cmp.Compare(a.fields[0].val.text, b.fields[0].val.text) })
		return out
	case fd.IsList():
		out := make([]value, v.List().Len())
		for i := range out {
			out[i] = singular(fd, v.List().Get(i))
		}
		return out
	default:
		return []value{singular(fd, v)}
	}
}

func singular(fd protoreflect.FieldDescriptor, v protoreflect.Value) value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return value{kind: valueIdent, text: strconv.FormatBool(v.Bool())}
	case protoreflect.EnumKind:
		if found := fd.Enum().Values().ByNumber(v.Enum()); found != nil {
			return value{kind: valueIdent, text: string(found.Name())}
		}
		return value{kind: valueNumber, text: strconv.Itoa(int(v.Enum()))}
	case protoreflect.StringKind:
		return value{kind: valueString, text: v.String()}
	case protoreflect.BytesKind:
		return value{kind: valueString, text: string(v.Bytes())}
	case protoreflect.FloatKind:
		return floatValue(v.Float(), 32)
	case protoreflect.DoubleKind:
		return floatValue(v.Float(), 64)
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return literalOf(v.Message())
	default:
		return value{kind: valueNumber, text: v.String()}
	}
}

func floatValue(f float64, bits int) value {
	switch {
	case math.IsInf(f, 1):
		return value{kind: valueIdent, text: "inf"}
	case math.IsInf(f, -1):
		return value{kind: valueIdent, text: "-inf"}
	case math.IsNaN(f):
		return value{kind: valueIdent, text: "nan"}
	default:
		return value{kind: valueNumber, text: strconv.FormatFloat(f, 'g', -1, bits)}
	}
}

func literalOf(m protoreflect.Message) value {
	out := value{kind: valueMessage}
	for _, set := range setFields(m) {
		f := literalField{name: set.field.TextName()}
		if set.field.IsExtension() {
			f.name, f.ext = string(set.field.FullName()), true
		}
		values := listed(set.field, set.value)
		if set.field.IsList() || set.field.IsMap() {
			f.val = value{kind: valueList, list: values}
		} else {
			f.val = values[0]
		}
		out.fields = append(out.fields, f)
	}
	return out
}
