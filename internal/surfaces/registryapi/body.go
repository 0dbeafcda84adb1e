package registryapi

import (
	"encoding/json"
	"errors"
	"io"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/registry/schemas"
)

// maxBody limits a request and so a schema (docs/spec/registry.md#limits), in bytes.
const maxBody = 5 << 20

// schemaRequest is the body of every call with a schema. Other members, such as metadata
// and ruleSet, are ignored.
type schemaRequest struct {
	Schema     *string             `json:"schema"`
	SchemaType string              `json:"schemaType"`
	References []schemas.Reference `json:"references"`
	ID         int32               `json:"id"`
	Version    int32               `json:"version"`
}

// draft decodes the schema in the body of the call.
func (c *call) draft() (*schemas.Draft, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	req, ok := plainRequest(body)
	if !ok {
		req = schemaRequest{}
		err = decode(body, &req)
	}
	if err != nil {
		return nil, err
	}
	if req.Schema == nil {
		return nil, invalidBody("schema is missing")
	}
	t, err := schemas.ParseType(req.SchemaType)
	if err != nil {
		return nil, err
	}
	return &schemas.Draft{
		Type: t, Text: *req.Schema, References: req.References, ID: req.ID, Version: req.Version,
		Reader: &reader{call: c},
	}, nil
}

// body reads the body of the call.
func (c *call) body() ([]byte, error) { return c.ReadBody(c.R, maxBody) }

// decode decodes the body of the call as JSON.
func (c *call) decode(into any) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	return decode(body, into)
}

// decode decodes JSON in UTF-8. Invalid JSON is 400, JSON of the wrong types is 422.
func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	var shape *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &shape):
		return invalidBody(web.DecodeText(err.Error()))
	}
	if len(body) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return errs.Newf(errs.Invalid, "%w: %w", errNotJSON, err)
}

func invalidBody(why string) error {
	return errs.Newf(errs.Invalid, "%w: %s", errBody, why)
}
