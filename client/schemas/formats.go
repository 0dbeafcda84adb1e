package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/twmb/avro"
)

// avroFormat is the Avro binary encoding.
type avroFormat struct{ schema *avro.Schema }

func newAvro(text string, imports []imported) (format, error) {
	var cache avro.SchemaCache
	for _, i := range imports {
		if _, err := cache.Parse(i.text); err != nil {
			return nil, fmt.Errorf("parsing the reference %s: %w", i.name, err)
		}
	}
	schema, err := cache.Parse(text)
	if err != nil {
		return nil, err
	}
	return &avroFormat{schema}, nil
}

func (f *avroFormat) encode(value any) ([]byte, error) { return f.schema.Encode(value) }

func (f *avroFormat) encodeJSON(text []byte) ([]byte, error) {
	var value any
	if err := f.schema.DecodeJSON(text, &value, avro.TaggedUnions()); err != nil {
		return nil, err
	}
	return f.schema.Encode(value)
}

func (f *avroFormat) decode(data []byte, into any) error {
	rest, err := f.schema.Decode(data, into)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("payload has %d extra bytes", len(rest))
	}
	return nil
}

func (f *avroFormat) decodeJSON(data []byte) ([]byte, error) {
	var value any
	if err := f.decode(data, &value); err != nil {
		return nil, err
	}
	return f.schema.EncodeJSON(value)
}

// jsonFormat is JSON that is validated against a JSON schema.
type jsonFormat struct{ schema *jsonschema.Schema }

// jsonBase is the base URI of a schema without an $id. It is never requested.
const jsonBase = "schema.json"

func newJSON(text string, imports []imported) (format, error) {
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	for _, i := range append(imports, imported{jsonBase, text}) {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(i.text)))
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", i.name, err)
		}
		if err := compiler.AddResource(i.name, document); err != nil {
			return nil, fmt.Errorf("adding %s: %w", i.name, err)
		}
	}
	schema, err := compiler.Compile(jsonBase)
	if err != nil {
		return nil, err
	}
	return &jsonFormat{schema}, nil
}

// noLoader prevents a schema from loading files or URLs.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not a reference of the schema", url)
}

func (f *jsonFormat) encode(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return f.encodeJSON(text)
}

func (f *jsonFormat) encodeJSON(text []byte) ([]byte, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if err := f.schema.Validate(value); err != nil {
		return nil, err
	}
	return text, nil
}

func (f *jsonFormat) decode(data []byte, into any) error { return json.Unmarshal(data, into) }

func (f *jsonFormat) decodeJSON(data []byte) ([]byte, error) { return compact(data) }
