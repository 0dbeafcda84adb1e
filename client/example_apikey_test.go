package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"freshet.dev/client"
	"freshet.dev/client/resources"
)

// Create a service account that may produce, and an API key for it. Then produce with the key.
func Example_apiKey() {
	ctx := context.Background()
	admin := connect()
	defer admin.Close()
	if err := admin.Topic("example-keyed").Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}

	api := resources.New(admin)
	create := func(kind resources.Kind, name string, spec map[string]any) resources.Object {
		object, err := api.Create(ctx, kind, "default", map[string]any{
			"apiVersion": resources.Group + "/" + resources.Version, "kind": kind.Kind,
			"metadata": map[string]any{"name": name}, "spec": spec,
		}, resources.WriteOptions{})
		if err != nil {
			panic(err)
		}
		return object
	}
	create(resources.ServiceAccounts, "example-app", map[string]any{})
	create(resources.RoleBindings, "example-app", map[string]any{
		"roleRef":  map[string]any{"apiGroup": resources.Group, "kind": "ClusterRole", "name": "topic-producer"},
		"subjects": []any{map[string]any{"apiGroup": resources.Group, "kind": "ServiceAccount", "name": "example-app"}},
	})
	key := create(resources.APIKeys, "example-app", map[string]any{
		"instanceName": "default", "serviceAccountName": "example-app",
	})

	c, err := client.New(client.Config{
		BaseURL: os.Getenv("FRESHET_SERVER"),
		// Only this response contains the token; a key with an encryptionKey returns it encrypted.
		TokenSource: client.StaticToken(key.Text("status", "token")),
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	topic := c.Topic("example-keyed")
	_, err = topic.Produce(ctx, client.Message{Value: []byte("v")})
	fmt.Println("produce:", err)
	err = topic.Delete(ctx, false)
	fmt.Println("delete is denied:", errors.Is(err, client.ErrDenied))
	// Output:
	// produce: <nil>
	// delete is denied: true
}
