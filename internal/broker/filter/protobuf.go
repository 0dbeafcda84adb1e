package filter

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Protobuf returns the schema of payloads that are one Protobuf message.
func Protobuf(message protoreflect.MessageDescriptor) *Schema {
	return &Schema{decode: func(b *budget, data []byte) ref.Val {
		return &object{source: protoObject{message, data}, budget: b}
	}}
}

// ProtobufFile returns the schema of payloads that begin with the position of their message in a
// file, as serializers of Confluent Schema Registry write them: the number of indexes, then the
// indexes of the message and of those that enclose it; a single 0 is the first message.
func ProtobufFile(file protoreflect.FileDescriptor) *Schema {
	return &Schema{decode: func(b *budget, data []byte) ref.Val {
		message, rest, err := messageIn(file, data)
		if err != nil {
			return types.WrapErr(err)
		}
		return &object{source: protoObject{message, rest}, budget: b}
	}}
}

var (
	errIndexes  = errors.New("payload does not begin with the indexes of a Protobuf message of its schema")
	errProtobuf = errors.New("payload is not a valid Protobuf message")
)

// maxIndexes bounds the nesting of message types.
const maxIndexes = 64

func messageIn(file protoreflect.FileDescriptor, data []byte) (protoreflect.MessageDescriptor, []byte, error) {
	count, n := binary.Varint(data)
	if n <= 0 || count < 0 || count > maxIndexes {
		return nil, nil, errIndexes
	}
	data = data[n:]
	messages, index := file.Messages(), int64(0)
	if count > 0 {
		index, n = binary.Varint(data)
		data = data[max(n, 0):]
	}
	for {
		if n <= 0 || index < 0 || index >= int64(messages.Len()) {
			return nil, nil, errIndexes
		}
		message := messages.Get(int(index))
		if count--; count <= 0 {
			return message, data, nil
		}
		messages = message.Messages()
		index, n = binary.Varint(data)
		data = data[max(n, 0):]
	}
}

// protoObject is an encoded message. Its fields are decoded when they are read.
type protoObject struct {
	message protoreflect.MessageDescriptor
	data    []byte
}

// field returns a field by the name in the schema or in JSON. A field that is not in the payload is
// its default, unless its presence is part of the message: then it does not exist.
func (o protoObject) field(b *budget, name string) (ref.Val, bool) {
	fields := o.message.Fields()
	f := fields.ByTextName(name)
	if f == nil {
		if f = fields.ByJSONName(name); f == nil {
			return nil, false
		}
	}
	var found []occurrence
	err := o.scan(b, func(number protowire.Number, at occurrence) error {
		if number == f.Number() {
			if !f.IsList() && !f.IsMap() && f.Message() == nil {
				found = found[:0] // the last one counts
			} else if err := b.element(1); err != nil {
				return err
			}
			found = append(found, at)
		}
		return nil
	})
	switch {
	case err != nil:
		return types.WrapErr(err), true
	case len(found) == 0 && f.HasPresence():
		return nil, false
	}
	return protoField(b, f, found), true
}

func (o protoObject) each(b *budget, visit func(string, ref.Val) error) error {
	fields := o.message.Fields()
	for i := range fields.Len() {
		name := fields.Get(i).TextName()
		value, ok := o.field(b, name)
		if !ok {
			continue
		}
		if err := visit(name, value); err != nil {
			return err
		}
	}
	return nil
}

// occurrence is a field on the wire.
type occurrence struct {
	kind protowire.Type
	data []byte // begins with the value; of a group or bytes, exactly the content
}

// scan calls visit for every field on the wire.
func (o protoObject) scan(b *budget, visit func(protowire.Number, occurrence) error) error {
	for data := o.data; len(data) > 0; {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errProtobuf
		}
		data = data[n:]
		at := occurrence{kind, data}
		switch kind {
		case protowire.BytesType:
			at.data, n = protowire.ConsumeBytes(data)
		case protowire.StartGroupType:
			at.data, n = protowire.ConsumeGroup(number, data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return errProtobuf
		}
		if err := b.spend(n); err != nil {
			return err
		}
		if err := visit(number, at); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// protoField returns the value of a field from its occurrences.
func protoField(b *budget, f protoreflect.FieldDescriptor, found []occurrence) ref.Val {
	switch {
	case f.IsMap():
		return &object{source: protoMap{f, found}, budget: b}
	case f.IsList():
		return list(b, func(add func(ref.Val) error) error { return protoItems(f, found, b, add) })
	case f.Message() != nil:
		data := found[0].data
		if len(found) > 1 { // the parts of a message are merged, which concatenation does
			data = nil
			for _, at := range found {
				data = append(data, at.data...)
			}
		}
		return &object{source: protoObject{f.Message(), data}, budget: b}
	case len(found) == 0:
		return protoDefault(f)
	}
	value, _ := protoScalar(f, found[0])
	return value
}

// protoItems adds the items of a repeated field, which may be packed.
func protoItems(f protoreflect.FieldDescriptor, found []occurrence, b *budget, add func(ref.Val) error) error {
	for _, at := range found {
		if f.Message() != nil {
			if err := add(&object{source: protoObject{f.Message(), at.data}, budget: b}); err != nil {
				return err
			}
			continue
		}
		kind := wireTypes[f.Kind()]
		if at.kind == kind {
			value, _ := protoScalar(f, at)
			if err := add(value); err != nil {
				return err
			}
			continue
		}
		for data := at.data; len(data) > 0; {
			value, n := protoScalar(f, occurrence{kind, data})
			if n <= 0 {
				return errProtobuf
			}
			if err := add(value); err != nil {
				return err
			}
			data = data[n:]
		}
	}
	return nil
}

// wireTypes are the types of scalars that can be packed; the others are protowire.BytesType.
var wireTypes = func() [32]protowire.Type {
	var all [32]protowire.Type
	for i := range all {
		all[i] = protowire.VarintType
	}
	for _, k := range []protoreflect.Kind{
		protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind,
	} {
		all[k] = protowire.Fixed32Type
	}
	for _, k := range []protoreflect.Kind{
		protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind,
	} {
		all[k] = protowire.Fixed64Type
	}
	all[protoreflect.StringKind], all[protoreflect.BytesKind] = protowire.BytesType, protowire.BytesType
	return all
}()

// protoScalar returns a scalar and the bytes that it takes; an error and a negative number if the
// bytes are not of the field's type.
func protoScalar(f protoreflect.FieldDescriptor, at occurrence) (ref.Val, int) {
	if at.kind != wireTypes[f.Kind()] {
		return types.WrapErr(errProtobuf), -1
	}
	switch at.kind {
	case protowire.BytesType:
		if f.Kind() == protoreflect.StringKind {
			return types.String(text(at.data)), len(at.data)
		}
		return types.Bytes(at.data), len(at.data)
	case protowire.Fixed32Type:
		v, n := protowire.ConsumeFixed32(at.data)
		switch f.Kind() {
		case protoreflect.FloatKind:
			return types.Double(math.Float32frombits(v)), n
		case protoreflect.Sfixed32Kind:
			return types.Int(int32(v)), n
		}
		return types.Uint(v), n
	case protowire.Fixed64Type:
		v, n := protowire.ConsumeFixed64(at.data)
		switch f.Kind() {
		case protoreflect.DoubleKind:
			return types.Double(math.Float64frombits(v)), n
		case protoreflect.Sfixed64Kind:
			return types.Int(int64(v)), n
		}
		return types.Uint(v), n
	}
	v, n := protowire.ConsumeVarint(at.data)
	return protoVarint(f, v), n
}

func protoVarint(f protoreflect.FieldDescriptor, v uint64) ref.Val {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return types.Bool(v != 0)
	case protoreflect.Uint32Kind:
		return types.Uint(uint32(v))
	case protoreflect.Uint64Kind:
		return types.Uint(v)
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return types.Int(protowire.DecodeZigZag(v))
	case protoreflect.EnumKind:
		if named := f.Enum().Values().ByNumber(protoreflect.EnumNumber(int32(v))); named != nil {
			return types.String(named.Name())
		}
		return types.Int(int32(v))
	case protoreflect.Int32Kind:
		return types.Int(int32(v))
	}
	return types.Int(int64(v))
}

// protoDefault returns the value of a scalar that is not in the payload.
func protoDefault(f protoreflect.FieldDescriptor) ref.Val {
	switch f.Kind() {
	case protoreflect.StringKind:
		return types.String(f.Default().String())
	case protoreflect.BytesKind:
		return types.Bytes(f.Default().Bytes())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return types.Double(f.Default().Float())
	case protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return types.Uint(f.Default().Uint())
	case protoreflect.EnumKind:
		return protoVarint(f, uint64(f.Default().Enum()))
	}
	return protoVarint(f, 0)
}

// protoMap is a map field: its occurrences are messages with a key and a value.
type protoMap struct {
	of      protoreflect.FieldDescriptor
	entries []occurrence
}

func (m protoMap) field(b *budget, name string) (found ref.Val, ok bool) {
	err := m.each(b, func(key string, value ref.Val) error {
		if key == name {
			found, ok = value, true
		}
		return nil
	})
	if err != nil {
		return types.WrapErr(err), true
	}
	return found, ok
}

func (m protoMap) each(b *budget, visit func(string, ref.Val) error) error {
	entry := m.of.Message()
	for _, at := range m.entries {
		pair := protoObject{entry, at.data}
		key, ok := pair.field(b, "key")
		if !ok {
			key = protoDefault(entry.Fields().ByNumber(1))
		}
		value, ok := pair.field(b, "value")
		if !ok {
			value = protoDefaultOf(b, entry.Fields().ByNumber(2))
		}
		if types.IsError(key) {
			return key.(*types.Err)
		}
		name, ok := key.ConvertToType(types.StringType).(types.String)
		if !ok {
			return errProtobuf
		}
		if err := visit(string(name), value); err != nil {
			return err
		}
	}
	return nil
}

// protoDefaultOf returns the default of the value of a map, which may be a message.
func protoDefaultOf(b *budget, f protoreflect.FieldDescriptor) ref.Val {
	if f.Message() != nil {
		return &object{source: protoObject{message: f.Message()}, budget: b}
	}
	return protoDefault(f)
}
