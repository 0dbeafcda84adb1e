package client

import (
	"context"
	"net/http"
	"strconv"
)

// TopicSchema is a version of a topic's own schema. Package client/schemas is for the schemas
// of the registry.
type TopicSchema struct {
	Version int64 `json:"version"`
	// Type is AVRO, JSON, PROTOBUF, PROTOBUF_NATIVE, STRING, ...
	Type string `json:"type"`
	// Text is the schema; for AVRO, JSON and PROTOBUF it is an Avro record.
	Text       string            `json:"data"`
	Properties map[string]string `json:"properties"`
}

// Schema returns the latest version of the topic's schema. ErrNotFound means that it has none.
func (t *Topic) Schema(ctx context.Context) (*TopicSchema, error) { return t.schema(ctx, "/schema") }

// SchemaVersion returns one version of the topic's schema.
func (t *Topic) SchemaVersion(ctx context.Context, version int64) (*TopicSchema, error) {
	return t.schema(ctx, "/schema/"+strconv.FormatInt(version, 10))
}

func (t *Topic) schema(ctx context.Context, suffix string) (*TopicSchema, error) {
	schema := new(TopicSchema)
	return schema, t.call(ctx, http.MethodGet, t.path(adminRoot+"schemas/", suffix), nil, nil, schema)
}

// SetSchema sets the topic's schema and returns its version. An existing schema keeps its
// version. ErrConflict means that the schema is not compatible.
func (t *Topic) SetSchema(ctx context.Context, schema TopicSchema) (int64, error) {
	body := map[string]any{"type": schema.Type, "schema": schema.Text, "properties": orEmpty(schema.Properties)}
	var result struct {
		Version struct {
			Version int64 `json:"version"`
		} `json:"version"`
	}
	err := t.callIdempotent(ctx, http.MethodPost, t.path(adminRoot+"schemas/", "/schema"), nil, body, &result)
	return result.Version.Version, err
}

// DeleteSchema deletes the topic's schema.
func (t *Topic) DeleteSchema(ctx context.Context) error {
	return t.call(ctx, http.MethodDelete, t.path(adminRoot+"schemas/", "/schema"), nil, nil, nil)
}
