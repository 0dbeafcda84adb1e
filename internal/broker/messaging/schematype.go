package messaging

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/workpool"
	"freshet/internal/registry/avro"
)

// SchemaType is the type of a topic's payloads in Pulsar's terms.
type SchemaType string

// The types. The text of JSON, AVRO and PROTOBUF schemas is an Avro record.
const (
	SchemaNone           SchemaType = "NONE"
	SchemaBytes          SchemaType = "BYTES"
	SchemaString         SchemaType = "STRING"
	SchemaJSON           SchemaType = "JSON"
	SchemaAvro           SchemaType = "AVRO"
	SchemaProtobuf       SchemaType = "PROTOBUF"
	SchemaProtobufNative SchemaType = "PROTOBUF_NATIVE"
	SchemaKeyValue       SchemaType = "KEY_VALUE"
	SchemaBoolean        SchemaType = "BOOLEAN"
	SchemaInt8           SchemaType = "INT8"
	SchemaInt16          SchemaType = "INT16"
	SchemaInt32          SchemaType = "INT32"
	SchemaInt64          SchemaType = "INT64"
	SchemaFloat          SchemaType = "FLOAT"
	SchemaDouble         SchemaType = "DOUBLE"
	SchemaDate           SchemaType = "DATE"
	SchemaTime           SchemaType = "TIME"
	SchemaTimestamp      SchemaType = "TIMESTAMP"
	SchemaInstant        SchemaType = "INSTANT"
	SchemaLocalDate      SchemaType = "LOCAL_DATE"
	SchemaLocalTime      SchemaType = "LOCAL_TIME"
	SchemaLocalDateTime  SchemaType = "LOCAL_DATE_TIME"
)

// primitiveSizes lists every type without a schema text and the length of its payloads; -1 means
// any length.
var primitiveSizes = map[SchemaType]int{
	SchemaNone: -1, SchemaBytes: -1, SchemaString: -1,
	SchemaBoolean: 1, SchemaInt8: 1, SchemaInt16: 2, SchemaInt32: 4, SchemaInt64: 8,
	SchemaFloat: 4, SchemaDouble: 8, SchemaDate: 8, SchemaTime: 8, SchemaTimestamp: 8,
	SchemaInstant: 12, SchemaLocalDate: 8, SchemaLocalTime: 8, SchemaLocalDateTime: 16,
}

// structured reports whether the schema text is an Avro record.
func (t SchemaType) structured() bool {
	return t == SchemaJSON || t == SchemaAvro || t == SchemaProtobuf
}

func invalidSchema(format string, args ...any) error {
	return errs.Newf(errs.Invalid, "%w: %w", ErrInvalidSchema, fmt.Errorf(format, args...))
}

// checkSchema returns the reason why a definition is not a valid schema.
func (ts *TopicSchemas) checkSchema(job *workpool.Job, s *Schema) error {
	if len(s.Text) > ts.limits.SchemaBytes {
		return errs.Newf(errs.TooLarge, "%w: schema text is over %d bytes", ErrTooMuchData, ts.limits.SchemaBytes)
	}
	if err := checkProperties(s.Properties); err != nil {
		return err
	}
	return job.Do(workpool.LaneOf(len(s.Text)), func() error {
		if s.Type == SchemaKeyValue {
			_, _, err := s.split()
			return err
		}
		return s.check()
	})
}

func (s *Schema) check() error {
	switch {
	case s.Type.structured():
		_, err := s.record()
		return err
	case s.Type == SchemaProtobufNative:
		_, err := s.message()
		return err
	}
	if _, ok := primitiveSizes[s.Type]; !ok {
		return invalidSchema("type %q is unknown", s.Type)
	}
	if strings.TrimSpace(s.Text) != "" {
		return invalidSchema("a schema of type %s has no text", s.Type)
	}
	return nil
}

// record parses the Avro record of a structured schema.
func (s *Schema) record() (*avro.Schema, error) {
	parsed, err := avro.Parse(s.Text, nil)
	if err != nil {
		return nil, invalidSchema("%w", err)
	}
	if !strings.HasPrefix(parsed.Canonical(), `{"type":"record"`) {
		return nil, invalidSchema("a schema of type %s must be an Avro record", s.Type)
	}
	return parsed, nil
}

// Properties that define the two halves of a KEY_VALUE schema.
const (
	propertyKeyType   = "key.schema.type"
	propertyValueType = "value.schema.type"
	propertyEncoding  = "kv.encoding.type"

	encodingSeparated = "SEPARATED"
)

// split returns the two halves of a KEY_VALUE schema. Its text is a JSON object whose members key
// and value hold the two texts, as strings or as JSON; the types are in the properties and default
// to BYTES.
func (s *Schema) split() (key, value *Schema, err error) {
	var halves struct {
		Key   json.RawMessage `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal([]byte(s.Text), &halves); err != nil {
		return nil, nil, invalidSchema("the text of a KEY_VALUE schema must be a JSON object with key and value: %w",
			err)
	}
	if key, err = splitHalf(s.Properties[propertyKeyType], halves.Key); err != nil {
		return nil, nil, err
	}
	value, err = splitHalf(s.Properties[propertyValueType], halves.Value)
	return key, value, err
}

func splitHalf(kind string, text json.RawMessage) (*Schema, error) {
	s := &Schema{Type: SchemaType(kind)}
	if s.Type == "" {
		s.Type = SchemaBytes
	}
	if s.Type == SchemaKeyValue {
		return nil, invalidSchema("a KEY_VALUE schema cannot hold another")
	}
	if len(text) > 0 && text[0] == '"' {
		if err := json.Unmarshal(text, &s.Text); err != nil {
			return nil, invalidSchema("%w", err)
		}
	} else if string(text) != "null" && (s.Type.structured() || s.Type == SchemaProtobufNative) {
		s.Text = string(text)
	}
	return s, s.check()
}

// native is the JSON text of a PROTOBUF_NATIVE schema.
type native struct {
	FileDescriptorSet      string `json:"fileDescriptorSet"`
	RootMessageTypeName    string `json:"rootMessageTypeName"`
	RootFileDescriptorName string `json:"rootFileDescriptorName"`
}

func (s *Schema) native() (native, []byte, error) {
	var n native
	if err := json.Unmarshal([]byte(s.Text), &n); err != nil {
		return n, nil, invalidSchema("the text of a PROTOBUF_NATIVE schema must be a JSON object: %w", err)
	}
	set, err := base64.StdEncoding.DecodeString(n.FileDescriptorSet)
	if err != nil || len(set) == 0 || n.RootMessageTypeName == "" {
		return n, nil, invalidSchema(
			"a PROTOBUF_NATIVE schema needs fileDescriptorSet in base64 and rootMessageTypeName")
	}
	return n, set, nil
}
