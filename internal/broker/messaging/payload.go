package messaging

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"freshet/internal/base/lru"
	"freshet/internal/storage/engine"
)

// checker returns an error for a message that does not match a schema.
type checker func(*Message) error

// dataChecker returns an error for bytes that do not match a schema.
type dataChecker func([]byte) error

const maxParsedSchemas = 4096

// schemaCache holds the checkers of the most recently used schemas.
type schemaCache struct{ *lru.Cache[schemaKey, checker] }

type schemaKey struct {
	topic   engine.TopicID
	version int64
	how     validation
}

func newSchemaCache(size int64) schemaCache {
	return schemaCache{lru.New[schemaKey, checker](size)}
}

func (s *Schema) checker(how validation) (checker, error) {
	if s.Type == SchemaKeyValue {
		return s.pairChecker(how)
	}
	check, err := s.dataCheckerFor(how)
	if err != nil {
		return nil, err
	}
	return func(m *Message) error { return check(m.Payload) }, nil
}

func (s *Schema) dataCheckerFor(how validation) (dataChecker, error) {
	if how == syntaxValidated {
		return s.syntaxChecker()
	}
	return s.dataChecker()
}

func (s *Schema) dataChecker() (dataChecker, error) {
	switch s.Type {
	case SchemaJSON, SchemaAvro:
		record, err := s.record()
		if err != nil {
			return nil, err
		}
		if s.Type == SchemaJSON {
			return record.ValidateJSON, nil
		}
		return record.DecodeDatum, nil
	case SchemaProtobuf:
		// The schema text is an Avro record without field numbers, so the only possible check is
		// that the payload is well-formed Protobuf.
		return checkWire, nil
	case SchemaProtobufNative:
		desc, err := s.message()
		if err != nil {
			return nil, err
		}
		return func(b []byte) error {
			return proto.Unmarshal(b, dynamicpb.NewMessage(desc))
		}, nil
	case SchemaString:
		return func(b []byte) error {
			if !utf8.Valid(b) {
				return errors.New("not UTF-8")
			}
			return nil
		}, nil
	}
	return s.sizeChecker(), nil
}

func (s *Schema) sizeChecker() dataChecker {
	size, kind := primitiveSizes[s.Type], s.Type
	return func(b []byte) error {
		if size >= 0 && len(b) != size {
			return fmt.Errorf("%d bytes long, must be %d", len(b), size)
		}
		if kind == SchemaBoolean && b[0] > 1 {
			return errors.New("neither 0 nor 1")
		}
		return nil
	}
}

// checkWire checks that b is a sequence of complete Protobuf fields.
func checkWire(b []byte) error {
	for len(b) > 0 {
		_, _, n := protowire.ConsumeField(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
	}
	return nil
}

// message returns the root message of a PROTOBUF_NATIVE schema.
func (s *Schema) message() (protoreflect.MessageDescriptor, error) {
	n, raw, err := s.native()
	if err != nil {
		return nil, err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(raw, &set); err != nil {
		return nil, invalidSchema("fileDescriptorSet: %w", err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, invalidSchema("fileDescriptorSet: %w", err)
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(n.RootMessageTypeName))
	if err != nil {
		return nil, invalidSchema("rootMessageTypeName: %w", err)
	}
	desc, ok := found.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, invalidSchema("rootMessageTypeName %q is not a message", n.RootMessageTypeName)
	}
	return desc, nil
}
