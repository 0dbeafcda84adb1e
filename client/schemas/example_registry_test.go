package schemas_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
)

// connect returns a client of the server that the environment names.
func connect() *client.Client {
	c, err := client.New(client.Config{
		BaseURL:     os.Getenv("FRESHET_SERVER"),
		TokenSource: client.FileToken(os.Getenv("FRESHET_TOKEN_FILE")),
	})
	if err != nil {
		panic(err)
	}
	return c
}

// Register a schema and get it back by its id and as the latest version of its subject. Registering the same
// schema again returns the same id.
func ExampleRegistry_Register() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	registry := schemas.New(c)

	subject := schemas.SubjectForValue("example-registered")
	id, err := registry.Register(ctx, subject, schemas.Schema{Text: orderSchema})
	if err != nil {
		panic(err)
	}
	again, err := registry.Register(ctx, subject, schemas.Schema{Text: orderSchema})
	if err != nil {
		panic(err)
	}
	fmt.Println("same id:", id == again)

	latest, err := registry.Version(ctx, subject, schemas.Latest)
	if err != nil {
		panic(err)
	}
	fmt.Println(latest.Subject, latest.Version, latest.ID == id)
	// Output:
	// same id: true
	// example-registered-value 1 true
}

// A schema that the compatibility level of the subject does not allow is ErrConflict.
func ExampleRegistry_Register_incompatible() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	registry := schemas.New(c)
	if _, err := registry.Register(ctx, "example-strict", schemas.Schema{Text: orderSchema}); err != nil {
		panic(err)
	}

	other := schemas.Schema{Text: `{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}`}
	_, err := registry.Register(ctx, "example-strict", other)
	fmt.Println(errors.Is(err, client.ErrConflict))
	// Output: true
}

// Set the compatibility level of one subject: with FULL, old and new readers must understand each other's data.
func ExampleRegistry_SetLevel() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	registry := schemas.New(c)
	if _, err := registry.Register(ctx, "example-level", schemas.Schema{Text: orderSchema}); err != nil {
		panic(err)
	}

	if err := registry.SetLevel(ctx, "example-level", "FULL"); err != nil {
		panic(err)
	}
	fmt.Println(registry.Level(ctx, "example-level"))
	// Output: FULL <nil>
}

// Compare a draft with a registered version: what changes, and who can read whose data.
func ExampleRegistry_Diff() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	registry := schemas.New(c)
	if _, err := registry.Register(ctx, "example-diff", schemas.Schema{Text: orderSchema}); err != nil {
		panic(err)
	}

	draft := &schemas.Schema{Text: `{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},
		{"name": "note", "type": "string", "default": ""}, {"name": "price", "type": "double"}]}`}
	difference, err := registry.Diff(ctx,
		schemas.Side{Subject: "example-diff", Version: schemas.Latest},
		schemas.Side{Subject: "example-diff", Draft: draft})
	if err != nil {
		panic(err)
	}
	fmt.Println("new schema reads old data:", difference.Backward.Compatible)
	fmt.Println("old schema reads new data:", difference.Forward.Compatible)
	// Output:
	// new schema reads old data: false
	// old schema reads new data: true
}

// Find the subjects and versions that use the schema of a message.
func ExampleRegistry_SubjectVersions() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	registry := schemas.New(c)
	id, err := registry.Register(ctx, "example-used", schemas.Schema{Text: `{"type": "enum", "name": "Used",
		"symbols": ["YES"]}`})
	if err != nil {
		panic(err)
	}

	fmt.Println(registry.SubjectVersions(ctx, id))
	// Output: [{example-used 1}] <nil>
}

// Delete a subject. Readers of old messages can still use the schemas until they are deleted permanently.
func ExampleRegistry_DeleteSubject() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	registry := schemas.New(c)
	if _, err := registry.Register(ctx, "example-old", schemas.Schema{Text: orderSchema}); err != nil {
		panic(err)
	}

	fmt.Println(registry.DeleteSubject(ctx, "example-old", false))
	_, err := registry.Version(ctx, "example-old", schemas.Latest)
	fmt.Println(errors.Is(err, client.ErrNotFound))
	// Output:
	// [1] <nil>
	// true
}

// Register a JSON schema. The schema type is Avro by default.
func ExampleSchema_json() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	registry := schemas.New(c)
	_, err := registry.Register(ctx, "example-json", schemas.Schema{
		Type: schemas.JSON, Text: `{"type": "object", "properties": {"id": {"type": "integer"}}}`,
	})
	if err != nil {
		panic(err)
	}

	codec := schemas.NewCodec(registry)
	payload, err := codec.EncodeJSON(ctx, "example-json", []byte(`{"id": 7}`))
	if err != nil {
		panic(err)
	}
	_, text, ok := schemas.SplitID(payload)
	fmt.Println(ok, string(text))
	// Output: true {"id": 7}
}

// Produce values with a Producer: it encodes each value with the latest version of the subject.
func ExampleCodec_ForSubject() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	registry := schemas.New(c)
	subject := schemas.SubjectForValue("example-encoded")
	if _, err := registry.Register(ctx, subject, schemas.Schema{Text: orderSchema}); err != nil {
		panic(err)
	}
	topic := c.Topic("example-encoded")
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}

	codec := schemas.NewCodec(registry)
	p := topic.NewProducer(client.ProducerOptions{Encoder: codec.ForSubject(subject)})
	order := map[string]any{"id": 7, "note": "fragile"}
	if err := p.SendValue(ctx, order, client.Message{Key: "customer-7"}, nil); err != nil {
		panic(err)
	}
	if err := p.Close(ctx); err != nil {
		panic(err)
	}
	for msg, err := range topic.Read(ctx, client.Earliest) {
		if err != nil {
			panic(err)
		}
		text, _, err := codec.DecodeJSON(ctx, msg.Value)
		fmt.Println(msg.Key, string(text), err)
	}
	// Output: customer-7 {"id":7,"note":"fragile"} <nil>
}

// Encode with the schema of the topic itself. The version is metadata of the message, not part of the payload.
func ExampleTopicCodec() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-topic-schema")
	if _, err := topic.SetSchema(ctx, client.TopicSchema{Type: "AVRO", Text: orderSchema}); err != nil {
		panic(err)
	}

	codec := schemas.NewTopicCodec(topic)
	payload, version, err := codec.EncodeJSON(ctx, []byte(`{"id": 7, "note": ""}`))
	if err != nil {
		panic(err)
	}
	if _, err := topic.Produce(ctx, client.Message{Value: payload, SchemaVersion: &version}); err != nil {
		panic(err)
	}
	for msg, err := range topic.Read(ctx, client.Earliest) {
		if err != nil {
			panic(err)
		}
		text, err := codec.DecodeJSON(ctx, *msg.SchemaVersion, msg.Value)
		fmt.Println(string(text), err)
	}
	// Output: {"id":7,"note":""} <nil>
}
