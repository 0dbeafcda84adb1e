package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"freshet.dev/client"
)

// Produce one message with a key and properties. Messages with the same key keep their order.
func ExampleTopic_Produce() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-produced")
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}

	_, err := topic.Produce(ctx, client.Message{
		Key:        "customer-7",
		Value:      []byte("one order"),
		Properties: map[string]string{"currency": "EUR"},
		EventTime:  time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC),
	})
	if err != nil {
		panic(err)
	}
	for msg, err := range topic.Read(ctx, client.Earliest) {
		if err != nil {
			panic(err)
		}
		fmt.Println(msg.Key, string(msg.Value), msg.Properties["currency"], msg.EventTime.UTC().Format(time.RFC3339))
	}
	// Output: customer-7 one order EUR 2026-07-01T12:00:00Z
}

// Produce several messages in one call. One result per message reports which of them are stored.
func ExampleTopic_ProduceBatch() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-batch")
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}

	results, err := topic.ProduceBatch(ctx, []client.Message{
		{Value: []byte("first")},
		{Value: []byte("second")},
	})
	if err != nil { // the whole call failed
		panic(err)
	}
	for i, result := range results {
		fmt.Println(i, result.Err == nil)
	}
	// Output:
	// 0 true
	// 1 true
}

// Send headers with binary values. A header may occur several times, and its value may be null.
func ExampleMessage_headers() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-headers")
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}

	_, err := topic.Produce(ctx, client.Message{Value: []byte("v"), Headers: []client.Header{
		{Name: "trace", Value: []byte{0xca, 0xfe}},
		{Name: "trace", Value: nil},
	}})
	if err != nil {
		panic(err)
	}
	for msg, err := range topic.Read(ctx, client.Earliest) {
		if err != nil {
			panic(err)
		}
		for _, header := range msg.Headers {
			fmt.Printf("%s %x\n", header.Name, header.Value)
		}
	}
	// Output:
	// trace cafe
	// trace
}

// Deliver a message later. Until then it is part of the backlog, and no consumer gets it.
func ExampleMessage_delay() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	sub := c.Topic("example-reminders").Subscription("mailer")
	if err := sub.Create(ctx, client.SubscriptionOptions{}); err != nil {
		panic(err)
	}

	reminder := client.Message{Value: []byte("pay the invoice"), DeliverAfter: time.Hour}
	if _, err := sub.Topic().Produce(ctx, reminder); err != nil {
		panic(err)
	}
	stats, err := sub.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(stats.Delayed, "delayed message")
	// Output: 1 delayed message
}

// Retry without duplicates, also in another process: messages with the same idempotency key are stored once.
func ExampleMessage_idempotencyKey() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-payments")
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}

	for range 2 {
		produced, err := topic.Produce(ctx, client.Message{Value: []byte("10 EUR"), IdempotencyKey: "payment-4711"})
		if err != nil {
			panic(err)
		}
		fmt.Println("duplicate:", produced.Duplicate)
	}
	// Output:
	// duplicate: false
	// duplicate: true
}

// Send messages without waiting, and get the result of each in a callback.
func ExampleProducer_Send() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-clicks")
	if err := topic.Create(ctx, client.TopicOptions{}); err != nil {
		panic(err)
	}
	p := topic.NewProducer(client.ProducerOptions{Name: "web"})

	for i := range 3 {
		err := p.Send(ctx, client.Message{Value: fmt.Append(nil, "click ", i)}, func(_ client.Produced, err error) {
			fmt.Println("stored:", err == nil)
		})
		if err != nil {
			panic(err)
		}
	}
	if err := p.Flush(ctx); err != nil { // waits for the three callbacks
		panic(err)
	}
	fmt.Println(p.Close(ctx))
	fmt.Println(errors.Is(p.Send(ctx, client.Message{}, nil), client.ErrClosed))
	// Output:
	// stored: true
	// stored: true
	// stored: true
	// <nil>
	// true
}
