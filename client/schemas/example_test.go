package schemas_test

import (
	"context"
	"fmt"
	"os"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
)

const orderSchema = `{"type": "record", "name": "Order", "fields": [
	{"name": "id", "type": "long"},
	{"name": "note", "type": "string", "default": ""}]}`

// Encode a value with the id of its schema in front, and decode it.
func ExampleCodec() {
	ctx := context.Background()
	c, err := client.New(client.Config{
		BaseURL:     os.Getenv("FRESHET_SERVER"),
		TokenSource: client.FileToken(os.Getenv("FRESHET_TOKEN_FILE")),
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	registry := schemas.New(c)
	if _, err := registry.Register(ctx, "example-orders-value", schemas.Schema{Text: orderSchema}); err != nil {
		panic(err)
	}

	type order struct {
		ID   int64  `avro:"id"`
		Note string `avro:"note"`
	}
	codec := schemas.NewCodec(registry)
	payload, err := codec.Encode(ctx, schemas.SubjectForValue("example-orders"), &order{ID: 7, Note: "fragile"})
	if err != nil {
		panic(err)
	}

	var back order
	if err := codec.Decode(ctx, payload, &back); err != nil {
		panic(err)
	}
	fmt.Printf("%+v\n", back)
	text, _, err := codec.DecodeJSON(ctx, payload)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
	// Output:
	// {ID:7 Note:fragile}
	// {"id":7,"note":"fragile"}
}

// Check whether the registry would accept a draft, and print why it would not.
func ExampleRegistry_Check() {
	ctx := context.Background()
	c, err := client.New(client.Config{
		BaseURL:     os.Getenv("FRESHET_SERVER"),
		TokenSource: client.FileToken(os.Getenv("FRESHET_TOKEN_FILE")),
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	registry := schemas.New(c)
	if _, err := registry.Register(ctx, "example-check-value", schemas.Schema{Text: orderSchema}); err != nil {
		panic(err)
	}

	draft := schemas.Schema{Text: `{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}`}
	found, err := registry.Check(ctx, "example-check-value", draft)
	if err != nil {
		panic(err)
	}
	fmt.Println(found.Compatible, found.Level)
	for _, problem := range found.Problems {
		fmt.Println(problem.Type, problem.Info)
	}
	// Output:
	// false BACKWARD
	// TYPE_MISMATCH reader type: STRING not compatible with writer type: LONG
}
