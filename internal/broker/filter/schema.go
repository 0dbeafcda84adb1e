package filter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Schema decodes payloads. It is immutable and safe for concurrent use.
type Schema struct {
	decode func(b *budget, data []byte) ref.Val
}

// JSON returns the schema of payloads that are JSON documents.
func JSON() *Schema { return &Schema{decode: decodeJSON} }

// Text returns the schema of payloads that are UTF-8 text.
func Text() *Schema {
	return &Schema{decode: func(b *budget, data []byte) ref.Val {
		if err := b.spend(len(data)); err != nil {
			return types.WrapErr(err)
		}
		return types.String(text(data))
	}}
}

// Bytes returns the schema of payloads that are not decoded.
func Bytes() *Schema {
	return &Schema{decode: decodeBytes}
}

func decodeBytes(b *budget, data []byte) ref.Val {
	if err := b.spend(len(data)); err != nil {
		return types.WrapErr(err)
	}
	return types.Bytes(data)
}

// Boolean returns the schema of payloads that are one byte, 0 or 1.
func Boolean() *Schema {
	return &Schema{decode: func(_ *budget, data []byte) ref.Val {
		if len(data) != 1 {
			return types.WrapErr(errNumber)
		}
		return types.Bool(data[0] != 0)
	}}
}

var errNumber = errors.New("payload does not have the length of its type")

// Integer returns the schema of payloads that are an integer of 1, 2, 4 or 8 bytes, big endian.
func Integer() *Schema {
	return &Schema{decode: func(_ *budget, data []byte) ref.Val {
		switch len(data) {
		case 1:
			return types.Int(int8(data[0])) //nolint:gosec // in two's complement
		case 2:
			return types.Int(int16(binary.BigEndian.Uint16(data))) //nolint:gosec // in two's complement
		case 4:
			return types.Int(int32(binary.BigEndian.Uint32(data))) //nolint:gosec // in two's complement
		case 8:
			return types.Int(int64(binary.BigEndian.Uint64(data))) //nolint:gosec // in two's complement
		}
		return types.WrapErr(errNumber)
	}}
}

// Float returns the schema of payloads that are a floating point number of 4 or 8 bytes, big endian.
func Float() *Schema {
	return &Schema{decode: func(_ *budget, data []byte) ref.Val {
		switch len(data) {
		case 4:
			return types.Double(math.Float32frombits(binary.BigEndian.Uint32(data)))
		case 8:
			return types.Double(math.Float64frombits(binary.BigEndian.Uint64(data)))
		}
		return types.WrapErr(errNumber)
	}}
}

// decodeUnknown decodes a payload without a schema: JSON, then text, then bytes.
func decodeUnknown(b *budget, data []byte) ref.Val {
	if len(data) == 0 {
		return types.String("")
	}
	is, err := isJSON(b, data)
	switch {
	case err != nil:
		return types.WrapErr(err)
	case is:
		return decodeJSON(b, data)
	case utf8.Valid(data):
		return types.String(data)
	}
	return decodeBytes(b, data)
}

// wirePrefix is the length of the prefix of a registry's id: a zero byte and four bytes.
const wirePrefix = 5

// maxCached bounds the schemas that an evaluator remembers. Payloads choose the ids.
const maxCached = 256

// schemaCache finds the schema of a message and remembers it.
type schemaCache struct {
	source     Schemas
	topic      map[int64]*Schema
	registered map[int32]*Schema // nil for an id that does not exist
}

// decoderOf returns how to decode a message, and the data to decode.
func (c *schemaCache) decoderOf(ctx context.Context, m *Message) (func(*budget, []byte) ref.Val, []byte, error) {
	data := m.Payload
	if c.source == nil {
		return decodeUnknown, data, nil
	}
	if m.SchemaVersion < 0 && len(data) >= wirePrefix && data[0] == 0 {
		id := int32(binary.BigEndian.Uint32(data[1:])) //nolint:gosec // ids are positive
		s, err := cached(&c.registered, id, func() (*Schema, error) { return c.source.RegisteredSchema(ctx, id) })
		if err != nil {
			return nil, nil, fmt.Errorf("schema %d of the registry: %w", id, err)
		}
		if s != nil {
			return s.decode, data[wirePrefix:], nil
		}
	}
	s, err := cached(&c.topic, m.SchemaVersion, func() (*Schema, error) {
		return c.source.TopicSchema(ctx, m.SchemaVersion)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("schema version %d of the topic: %w", m.SchemaVersion, err)
	}
	if s != nil {
		return s.decode, data, nil
	}
	return decodeUnknown, data, nil
}

// cached returns the schema of a key, from the cache or from find.
func cached[K comparable](cache *map[K]*Schema, key K, find func() (*Schema, error)) (*Schema, error) {
	if s, ok := (*cache)[key]; ok {
		return s, nil
	}
	s, err := find()
	if err != nil {
		return nil, err
	}
	if *cache == nil || len(*cache) >= maxCached {
		*cache = map[K]*Schema{}
	}
	(*cache)[key] = s
	return s, nil
}
