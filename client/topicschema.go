package client

import (
	"context"
	"net/http"
	"strconv"
)

// TopicSchema is a version of a topic's own schema. The registry's schemas are
// apart: client/schemas.
type TopicSchema struct {
	Version int64 `json:"version"`
	// Type is AVRO, JSON, PROTOBUF, PROTOBUF_NATIVE, STRING, ...
	Type string `json:"type"`
	// Text is the schema: of AVRO, JSON and PROTOBUF an Avro record.
	Text       string            `json:"data"`
	Properties map[string]string `json:"properties"`
}

// Schema returns the latest version of the topic's schema. ErrNotFound says that
// it has none.
func (t *Topic) Schema(ctx context.Context) (*TopicSchema, error) {
	return t.schema(ctx, "/schema")
}

// SchemaVersion returns one version of the topic's schema.
func (t *Topic) SchemaVersion(ctx context.Context, version int64) (*TopicSchema, error) {
	return t.schema(ctx, "/schema/"+strconv.FormatInt(version, 10))
}

func (t *Topic) schema(ctx context.Context, suffix string) (*TopicSchema, error) {
	schema := new(TopicSchema)
	return schema, t.call(ctx, http.MethodGet, t.path(adminRoot+"schemas/", suffix), nil, nil, schema)
}

// SetSchema gives the topic a schema and returns its version. The same schema
// again has the version it had; ErrConflict says that it is not compatible.
func (t *Topic) SetSchema(ctx context.Context, schema TopicSchema) (int64, error) {
	body := map[string]any{"type": schema.Type, "schema": schema.Text, "properties": orEmpty(schema.Properties)}
	var answer struct {
		Version struct {
			Version int64 `json:"version"`
		} `json:"version"`
	}
	err := t.repeatable(ctx, http.MethodPost, t.path(adminRoot+"schemas/", "/schema"), nil, body, &answer)
	return answer.Version.Version, err
}

// DeleteSchema removes the topic's schema.
func (t *Topic) DeleteSchema(ctx context.Context) error {
	return t.call(ctx, http.MethodDelete, t.path(adminRoot+"schemas/", "/schema"), nil, nil, nil)
}
