package filter

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"freshet/internal/registry/avro"
)

// Avro returns the schema of payloads that are one Avro datum.
func Avro(schema *avro.Schema) *Schema {
	return &Schema{decode: func(b *budget, data []byte) ref.Val {
		v, err := schema.Value(data, &b.steps)
		if err != nil {
			return types.WrapErr(err)
		}
		return avroValue(b, v)
	}}
}

func avroValue(b *budget, v avro.Value) ref.Val {
	out, err := decodeAvro(b, v)
	if err != nil {
		return types.WrapErr(err)
	}
	return out
}

func decodeAvro(b *budget, v avro.Value) (ref.Val, error) {
	switch v.Kind() {
	case avro.BooleanValue:
		x, err := v.Bool()
		return types.Bool(x), err
	case avro.IntValue:
		x, err := v.Int()
		return types.Int(x), err
	case avro.DoubleValue:
		x, err := v.Double()
		return types.Double(x), err
	case avro.StringValue, avro.BytesValue:
		x, err := v.Bytes()
		if err == nil {
			err = b.spend(len(x))
		}
		if err != nil || v.Kind() == avro.BytesValue {
			return types.Bytes(x), err
		}
		return types.String(text(x)), nil
	case avro.ObjectValue:
		return &object{source: avroObject{v}, budget: b}, nil
	case avro.ListValue:
		return list(b, func(add func(ref.Val) error) error {
			return v.Each(func(_ string, item avro.Value) error { return add(avroValue(b, item)) })
		}), nil
	}
	return types.NullValue, nil
}

// avroObject is a record or a map.
type avroObject struct{ avro.Value }

func (o avroObject) field(b *budget, name string) (ref.Val, bool) {
	v, ok, err := o.Field(name)
	if err != nil {
		return types.WrapErr(err), true
	}
	if !ok {
		return nil, false
	}
	return avroValue(b, v), true
}

func (o avroObject) each(b *budget, visit func(string, ref.Val) error) error {
	return o.Each(func(name string, v avro.Value) error { return visit(name, avroValue(b, v)) })
}
