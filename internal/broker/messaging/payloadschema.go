package messaging

import (
	"context"
	"errors"
	"io"

	"freshet/internal/broker/filter"
)

// payloadSchemas implements filter.Schemas for the messages of a topic.
type payloadSchemas struct {
	topic    *topic
	registry SchemaRegistry // nil means no registry
}

// TopicSchema implements filter.Schemas.
func (p payloadSchemas) TopicSchema(_ context.Context, version int64) (*filter.Schema, error) {
	v, ok := p.topic.schemas.version(version)
	if version < 0 {
		v, ok = p.topic.schemas.latest()
	}
	if !ok {
		return nil, nil
	}
	return v.payloadSchema()
}

// RegisteredSchema implements filter.Schemas.
func (p payloadSchemas) RegisteredSchema(ctx context.Context, id int32) (*filter.Schema, error) {
	if p.registry == nil {
		return nil, nil
	}
	return p.registry.PayloadSchema(ctx, id)
}

// payloadSchema returns how to decode payloads of the schema. The text of a PROTOBUF schema has no
// field numbers, and KEY_VALUE has two halves: these payloads are not decoded.
func (s *Schema) payloadSchema() (*filter.Schema, error) {
	switch s.Type {
	case SchemaJSON:
		return filter.JSON(), nil
	case SchemaAvro:
		record, err := s.record()
		if err != nil {
			return nil, err
		}
		return filter.Avro(record), nil
	case SchemaProtobufNative:
		message, err := s.message()
		if err != nil {
			return nil, err
		}
		return filter.Protobuf(message), nil
	case SchemaString:
		return filter.Text(), nil
	case SchemaBoolean:
		return filter.Boolean(), nil
	case SchemaFloat, SchemaDouble:
		return filter.Float(), nil
	case SchemaProtobuf, SchemaKeyValue, SchemaInstant, SchemaLocalDateTime:
		return filter.Bytes(), nil
	case SchemaNone, SchemaBytes:
		return nil, nil // decoded by its content
	}
	return filter.Integer(), nil
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }
