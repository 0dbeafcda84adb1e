package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"freshet.dev/client"
)

// Create a topic with three partitions. A second Create returns ErrConflict, so a program that may start
// several times ignores that error.
func ExampleTopic_Create() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-created")
	options := client.TopicOptions{Partitions: 3, Properties: map[string]string{"owner": "shop"}}
	if err := topic.Create(ctx, options); err != nil && !errors.Is(err, client.ErrConflict) {
		panic(err)
	}

	partitions, err := topic.Partitions(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(topic.Name(), partitions)
	fmt.Println(errors.Is(topic.Create(ctx, options), client.ErrConflict))
	// Output:
	// persistent://public/default/example-created 3
	// true
}

// Reject messages whose total is negative. The error of Produce has the expression and its values.
func ExampleTopic_SetContract() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-contract")
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}
	if err := topic.SetContract(ctx, `payload.total >= 0`); err != nil {
		panic(err)
	}

	_, err := topic.Produce(ctx, client.Message{Value: []byte(`{"total":-5}`)})
	fmt.Println(errors.Is(err, client.ErrInvalid), strings.Contains(err.Error(), "payload.total is -5"))
	fmt.Println(topic.Contract(ctx))
	// Output:
	// true true
	// payload.total >= 0 <nil>
}

// Delete a topic with its messages. With force, Delete also disconnects its consumers.
func ExampleTopic_Delete() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-deleted")
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}

	const force = false
	if err := topic.Delete(ctx, force); err != nil {
		panic(err)
	}
	_, err := topic.Stats(ctx)
	fmt.Println(errors.Is(err, client.ErrNotFound))
	// Output: true
}

// Add partitions to a topic. From then on, a key may be in another partition than before.
func ExampleTopic_Grow() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-growing")
	if err := topic.Create(ctx, client.TopicOptions{Partitions: 2}); err != nil {
		panic(err)
	}

	if err := topic.Grow(ctx, 4); err != nil {
		panic(err)
	}
	fmt.Println(topic.Partitions(ctx))
	// Output: 4 <nil>
}

// Store attributes of a topic: who owns it, or a setting of the Kafka protocol.
func ExampleTopic_SetProperties() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-properties")
	if err := topic.Create(ctx, client.TopicOptions{Properties: map[string]string{"owner": "shop"}}); err != nil {
		panic(err)
	}

	if err := topic.SetProperties(ctx, map[string]string{"tier": "gold"}); err != nil { // keeps the owner
		panic(err)
	}
	if err := topic.DeleteProperty(ctx, "owner"); err != nil {
		panic(err)
	}
	fmt.Println(topic.Properties(ctx))
	// Output: map[tier:gold] <nil>
}

// List the topics of a namespace. An empty namespace lists all topics that the caller may see.
func ExampleClient_Topics() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	for _, name := range []string{"example-listed-b", "example-listed-a"} {
		if err := c.Topic(name).Create(ctx, client.TopicOptions{}); err != nil {
			panic(err)
		}
	}

	topics, err := c.Topics(ctx, "public/default")
	if err != nil {
		panic(err)
	}
	for _, topic := range topics {
		if strings.HasPrefix(topic.Name, "example-listed-") {
			fmt.Println(topic.Name)
		}
	}
	// Unordered output:
	// example-listed-a
	// example-listed-b
}

// Set the schema of a topic. The server then rejects messages that do not match it.
func ExampleTopic_SetSchema() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-typed")
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}

	version, err := topic.SetSchema(ctx, client.TopicSchema{
		Type: "JSON",
		Text: `{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}`,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("version", version)
	produced, err := topic.Produce(ctx, client.Message{Value: []byte(`{"id": 7}`)})
	if err != nil {
		panic(err)
	}
	fmt.Println("stored with version", *produced.SchemaVersion)
	// Output:
	// version 0
	// stored with version 0
}

// Read the backlog of a subscription from the statistics of its topic.
func ExampleTopic_Stats() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-stats")
	if err := topic.Subscription("reports").Create(ctx, client.SubscriptionOptions{}); err != nil {
		panic(err)
	}
	for range 3 {
		if _, err := topic.Produce(ctx, client.Message{Value: []byte("v")}); err != nil {
			panic(err)
		}
	}

	stats, err := topic.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(stats.MessagesIn, "messages,", stats.Subscriptions["reports"].Backlog, "not acknowledged")
	// Output: 3 messages, 3 not acknowledged
}

// Move a consumer group of the Kafka protocol to the start of a topic. The group must have no members: stop
// its consumers first.
func ExampleClient_ResetGroup() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-kafka")
	if err := topic.Create(ctx, client.TopicOptions{Partitions: 2}); err != nil {
		panic(err)
	}
	for range 4 {
		if _, err := topic.Produce(ctx, client.Message{Value: []byte("v")}); err != nil {
			panic(err)
		}
	}

	start := client.GroupPosition{Topic: "example-kafka", At: client.Earliest}
	if err := c.ResetGroup(ctx, "", "example-workers", start); err != nil { // "" is the tenant public
		panic(err)
	}
	group, err := c.Group(ctx, "", "example-workers")
	if err != nil {
		panic(err)
	}
	fmt.Println(group.Name, group.State, "lag", group.Lag)
	fmt.Println(c.DeleteGroup(ctx, "", "example-workers"))
	// Output:
	// example-workers Empty lag 4
	// <nil>
}
