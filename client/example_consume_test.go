package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"freshet.dev/client"
)

// subscription creates a subscription of a new topic with these messages.
func subscription(ctx context.Context, c *client.Client, topic string, values ...string) *client.Subscription {
	sub := c.Topic(topic).Subscription("workers")
	if err := sub.Create(ctx, client.SubscriptionOptions{}); err != nil {
		panic(err)
	}
	for _, value := range values {
		if _, err := sub.Topic().Produce(ctx, client.Message{Value: []byte(value)}); err != nil {
			panic(err)
		}
	}
	return sub
}

// Create a subscription that starts at the first stored message. The default is Latest: only new messages.
func ExampleSubscription_Create() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-history")
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}
	if _, err := topic.Produce(ctx, client.Message{Value: []byte("old")}); err != nil {
		panic(err)
	}

	sub := topic.Subscription("audit")
	err := sub.Create(ctx, client.SubscriptionOptions{From: client.Earliest, AckTimeout: time.Minute})
	if err != nil && !errors.Is(err, client.ErrConflict) { // ErrConflict: it exists, keep its progress
		panic(err)
	}
	stats, err := sub.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(stats.Backlog, "message to consume")
	// Output: 1 message to consume
}

// Fetch messages with single calls instead of a loop. Ack removes a message from the subscription; Nack returns
// it for another delivery.
func ExampleSubscription_Fetch() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	sub := subscription(ctx, c, "example-fetched", "good", "bad")

	const wait, lease = 5 * time.Second, 30 * time.Second
	messages, err := sub.Fetch(ctx, 10, wait, lease)
	if err != nil {
		panic(err)
	}
	for _, msg := range messages {
		if string(msg.Value) == "bad" {
			err = sub.Nack(ctx, 0, msg.ID)
		} else {
			err = sub.Ack(ctx, msg.ID)
		}
		if err != nil {
			panic(err)
		}
	}
	again, err := sub.Fetch(ctx, 10, wait, lease)
	if err != nil {
		panic(err)
	}
	for _, msg := range again {
		fmt.Println(string(msg.Value), "was delivered", msg.Redeliveries+1, "times")
	}
	// Output: bad was delivered 2 times
}

// Extend the lease of a message that takes longer than expected. Messages and Handle do this automatically.
func ExampleSubscription_Extend() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	sub := subscription(ctx, c, "example-extended", "a long job")

	messages, err := sub.Fetch(ctx, 1, 5*time.Second, 10*time.Second)
	if err != nil {
		panic(err)
	}
	id := messages[0].ID
	fmt.Println(sub.Extend(ctx, time.Minute, id))

	if err := sub.Nack(ctx, 0, id); err != nil { // returns the message, so the lease is over
		panic(err)
	}
	fmt.Println(errors.Is(sub.Extend(ctx, time.Minute, id), client.ErrConflict))
	// Output:
	// <nil>
	// true
}

// Acknowledge a message and all earlier ones of its partition.
func ExampleSubscription_AckCumulative() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	sub := subscription(ctx, c, "example-cumulative", "one", "two", "three")

	messages, err := sub.Fetch(ctx, 2, 5*time.Second, time.Minute)
	if err != nil {
		panic(err)
	}
	last := messages[len(messages)-1]
	if err := sub.AckCumulative(ctx, last.ID); err != nil {
		panic(err)
	}
	stats, err := sub.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("acknowledged up to", string(last.Value), "and", stats.Backlog, "left")
	// Output: acknowledged up to two and 1 left
}

// Wait until an acknowledgement is durable before the program does something that it cannot repeat.
func ExampleDelivery_AckWait() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	sub := subscription(ctx, c, "example-durable", "transfer")

	for msg, err := range sub.Messages(ctx) {
		if err != nil {
			panic(err)
		}
		if err := msg.AckWait(ctx); err != nil {
			panic(err)
		}
		fmt.Println(string(msg.Value), "is acknowledged")
		break
	}
	// Output: transfer is acknowledged
}

// Move a message that fails again and again to a dead letter topic, and read it there.
func ExampleSubscription_DeadLetterTopic() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	sub := c.Topic("example-parcels").Subscription("sorter")
	err := sub.Create(ctx, client.SubscriptionOptions{
		MaxRedeliver:    new(1),
		DeadLetterTopic: "example-parcels-failed", // TOPIC-SUBSCRIPTION-DLQ by default
	})
	if err != nil {
		panic(err)
	}
	if _, err := sub.Topic().Produce(ctx, client.Message{Value: []byte("no address")}); err != nil {
		panic(err)
	}

	for msg, err := range sub.Messages(ctx) {
		if err != nil {
			panic(err)
		}
		msg.Nack(0)
		if msg.Redeliveries == 1 { // the last delivery
			break
		}
	}
	letters, err := sub.DeadLetterTopic(ctx)
	if err != nil {
		panic(err)
	}
	for msg, err := range letters.Tail(ctx, client.Earliest) {
		if err != nil {
			panic(err)
		}
		fmt.Println(letters.ShortName()+":", string(msg.Value))
		fmt.Println("has an origin:", msg.Properties[client.PropertyOrigin] != "")
		break
	}
	// Output:
	// example-parcels-failed: no address
	// has an origin: true
}

// Look at the next messages of a subscription without consuming them.
func ExampleSubscription_Peek() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	sub := subscription(ctx, c, "example-peeked", "first", "second")

	messages, err := sub.Peek(ctx, 1)
	if err != nil {
		panic(err)
	}
	for _, msg := range messages {
		fmt.Println(string(msg.Value))
	}
	// Output: first
}

// Deliver messages again: move the subscription back to a message, a time, or the start of the topic.
func ExampleSubscription_Reset() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	sub := subscription(ctx, c, "example-replayed", "one", "two", "three")
	if err := sub.SkipAll(ctx); err != nil { // acknowledges everything
		panic(err)
	}
	second := ""
	for msg, err := range sub.Topic().Read(ctx, client.Earliest) {
		if err != nil {
			panic(err)
		}
		if string(msg.Value) == "two" {
			second = msg.ID
		}
	}

	if err := sub.Reset(ctx, client.AtID(second)); err != nil {
		panic(err)
	}
	messages, err := sub.Fetch(ctx, 10, 5*time.Second, time.Minute)
	if err != nil {
		panic(err)
	}
	for _, msg := range messages {
		fmt.Println(string(msg.Value))
	}
	// Output:
	// two
	// three
}

// Read the messages that a topic has now, without a subscription. The loop ends after the last one.
func ExampleTopic_Read() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	sub := subscription(ctx, c, "example-read", "one", "two")

	for msg, err := range sub.Topic().Read(ctx, client.Earliest) {
		if err != nil {
			panic(err)
		}
		fmt.Println(string(msg.Value))
	}
	// Output:
	// one
	// two
}

// Find stored messages by an expression over their keys, properties and payloads.
func ExampleTopic_Search() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := subscription(ctx, c, "example-search", `{"total":99}`, `{"total":101}`).Topic()

	for msg, err := range topic.Search(ctx, `payload.total > 100`, client.SearchOptions{}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(string(msg.Value))
	}
	// Output:
	// {"total":101}
}

// Follow a topic without a subscription. The loop also returns messages that arrive later, until ctx is
// canceled or the loop ends.
func ExampleTopic_Tail() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := subscription(ctx, c, "example-followed", "before").Topic()

	for msg, err := range topic.Tail(ctx, client.Earliest) {
		if err != nil {
			panic(err)
		}
		fmt.Println(string(msg.Value))
		if string(msg.Value) == "after" {
			break
		}
		if _, err := topic.Produce(ctx, client.Message{Value: []byte("after")}); err != nil {
			panic(err)
		}
	}
	// Output:
	// before
	// after
}

// Parse a position that a user types: a word, a time, a duration before now, or a message id.
func ExampleParsePosition() {
	for _, text := range []string{"earliest", "2026-07-01T12:00:00Z", "15m", "yesterday"} {
		_, err := client.ParsePosition(text)
		fmt.Println(text, err == nil)
	}
	// Output:
	// earliest true
	// 2026-07-01T12:00:00Z true
	// 15m true
	// yesterday false
}
