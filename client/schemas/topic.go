package schemas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"freshet.dev/client"
)

// TopicCodec encodes and decodes payloads with a topic's own schema. The schema version is
// metadata of the message, so payloads have no prefix. It is safe for concurrent use.
type TopicCodec struct {
	t *client.Topic

	// mu protects the fields below. It is not held during calls.
	mu       sync.Mutex
	versions map[int64]format
	latest   *client.TopicSchema
	until    time.Time // when latest expires
}

// NewTopicCodec returns a TopicCodec.
func NewTopicCodec(t *client.Topic) *TopicCodec {
	return &TopicCodec{t: t, versions: make(map[int64]format)}
}

// EncodeJSON encodes a JSON text with the topic's latest schema, which it caches for one
// minute. It returns the version for client.Message.SchemaVersion.
func (c *TopicCodec) EncodeJSON(ctx context.Context, text []byte) (data []byte, version int64, err error) {
	schema, err := c.latestSchema(ctx)
	if err != nil {
		return nil, 0, err
	}
	f, err := c.format(schema)
	if err != nil {
		return nil, 0, err
	}
	if data, err = f.encodeJSON(text); err != nil {
		return nil, 0, fmt.Errorf("encoding by version %d of the topic's schema: %w", schema.Version, err)
	}
	return data, schema.Version, nil
}

// EncodeMessage implements client.Encoder: it encodes a value with the topic's latest schema
// and sets the schema version of the message.
func (c *TopicCodec) EncodeMessage(ctx context.Context, value any, into *client.Message) error {
	schema, err := c.latestSchema(ctx)
	if err != nil {
		return err
	}
	f, err := c.format(schema)
	if err != nil {
		return err
	}
	data, err := f.encode(value)
	if err != nil {
		return fmt.Errorf("encoding by version %d of the topic's schema: %w", schema.Version, err)
	}
	into.Value, into.SchemaVersion = data, new(schema.Version)
	return nil
}

func (c *TopicCodec) latestSchema(ctx context.Context) (*client.TopicSchema, error) {
	c.mu.Lock()
	schema, until := c.latest, c.until
	c.mu.Unlock()
	if schema != nil && time.Now().Before(until) {
		return schema, nil
	}
	schema, err := c.t.Schema(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest, c.until = schema, time.Now().Add(latestTTL)
	return schema, nil
}

// DecodeJSON decodes a payload with a version of the topic's schema and returns it as JSON.
func (c *TopicCodec) DecodeJSON(ctx context.Context, version int64, data []byte) ([]byte, error) {
	c.mu.Lock()
	f, ok := c.versions[version]
	c.mu.Unlock()
	if !ok {
		schema, err := c.t.SchemaVersion(ctx, version)
		if err != nil {
			return nil, err
		}
		if f, err = c.format(schema); err != nil {
			return nil, err
		}
	}
	text, err := f.decodeJSON(data)
	if err != nil {
		return nil, fmt.Errorf("decoding by version %d of the topic's schema: %w", version, err)
	}
	return text, nil
}

// format compiles a version of the schema and caches it.
func (c *TopicCodec) format(schema *client.TopicSchema) (f format, err error) {
	c.mu.Lock()
	f, ok := c.versions[schema.Version]
	c.mu.Unlock()
	if ok {
		return f, nil
	}
	switch schema.Type {
	case "AVRO":
		f, err = newAvro(schema.Text, nil)
	case "JSON":
		f = plainJSON{}
	case "PROTOBUF_NATIVE":
		f, err = newNative(schema.Text)
	default:
		err = fmt.Errorf("payloads of type %s cannot be converted to JSON", schema.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("compiling version %d of the topic's schema: %w", schema.Version, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.versions) >= maxSchemas {
		clear(c.versions)
	}
	c.versions[schema.Version] = f
	return f, nil
}

// plainJSON is JSON without validation; the server validates it.
type plainJSON struct{}

func (plainJSON) encode(value any) ([]byte, error)       { return json.Marshal(value) }
func (plainJSON) decode(data []byte, into any) error     { return json.Unmarshal(data, into) }
func (plainJSON) decodeJSON(data []byte) ([]byte, error) { return compact(data) }

func (plainJSON) encodeJSON(text []byte) ([]byte, error) {
	if !json.Valid(text) {
		return nil, errors.New("text is not valid JSON")
	}
	return text, nil
}

// nativeFormat is Protobuf with the descriptors that the schema contains.
type nativeFormat struct {
	message protoreflect.MessageDescriptor
	types   *dynamicpb.Types
}

func newNative(text string) (format, error) {
	var schema struct {
		Files []byte `json:"fileDescriptorSet"`
		Root  string `json:"rootMessageTypeName"`
	}
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		return nil, err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(schema.Files, &set); err != nil {
		return nil, fmt.Errorf("decoding the file descriptors: %w", err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, fmt.Errorf("reading the file descriptors: %w", err)
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(schema.Root))
	if err != nil {
		return nil, fmt.Errorf("finding the root message %s: %w", schema.Root, err)
	}
	message, ok := found.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("root %s of the schema is not a message", schema.Root)
	}
	return &nativeFormat{message, dynamicpb.NewTypes(files)}, nil
}

func (f *nativeFormat) encode(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return f.encodeJSON(text)
}

func (f *nativeFormat) encodeJSON(text []byte) ([]byte, error) {
	message := dynamicpb.NewMessage(f.message)
	if err := (protojson.UnmarshalOptions{Resolver: f.types}).Unmarshal(text, message); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(message)
}

func (f *nativeFormat) decode(data []byte, into any) error {
	text, err := f.decodeJSON(data)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (f *nativeFormat) decodeJSON(data []byte) ([]byte, error) {
	message := dynamicpb.NewMessage(f.message)
	if err := (proto.UnmarshalOptions{Resolver: f.types}).Unmarshal(data, message); err != nil {
		return nil, err
	}
	text, err := protojson.MarshalOptions{Resolver: f.types}.Marshal(message)
	if err != nil {
		return nil, err
	}
	return compact(text)
}
