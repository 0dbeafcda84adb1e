package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"freshet.dev/client"
)

// connect returns a client of the server that the environment names. The token is in a file that may change.
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

// Create a subscription and its topic, produce a message and consume it.
func Example() {
	ctx := context.Background()
	c, err := client.New(client.Config{
		BaseURL:     os.Getenv("FRESHET_SERVER"),
		TokenSource: client.FileToken(os.Getenv("FRESHET_TOKEN_FILE")),
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	topic := c.Topic("example-orders")
	sub := topic.Subscription("billing")
	if err := sub.Create(ctx, client.SubscriptionOptions{}); err != nil { // creates the topic, too
		panic(err)
	}
	if _, err := topic.Produce(ctx, client.Message{Key: "customer-7", Value: []byte("one order")}); err != nil {
		panic(err)
	}
	for msg, err := range sub.Messages(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(msg.Key, string(msg.Value))
		msg.Ack()
		break
	}
	// Output: customer-7 one order
}

// Handle work that can fail: Nack returns a message, and the server delivers it again after the delay. The loop ends
// with the context.
func ExampleSubscription_Messages() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := connect()
	defer c.Close()
	sub := c.Topic("example-jobs").Subscription("workers")
	if err := sub.Create(ctx, client.SubscriptionOptions{}); err != nil {
		panic(err)
	}
	for _, job := range []string{"sweep", "fail", "dust"} {
		if _, err := sub.Topic().Produce(ctx, client.Message{Value: []byte(job)}); err != nil {
			panic(err)
		}
	}

	done := 0
	for msg, err := range sub.Messages(ctx) {
		if err != nil {
			panic(err)
		}
		if string(msg.Value) == "fail" && msg.Redeliveries == 0 {
			msg.Nack(100 * time.Millisecond)
			continue
		}
		fmt.Println(string(msg.Value))
		msg.Ack()
		if done++; done == 3 {
			break
		}
	}
	// Output:
	// sweep
	// dust
	// fail
}

// Handle several messages at the same time. When ctx ends, Handle waits for the handlers that are running.
func ExampleSubscription_Handle() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c := connect()
	defer c.Close()
	sub := c.Topic("example-mails").Subscription("senders")
	if err := sub.Create(ctx, client.SubscriptionOptions{}); err != nil {
		panic(err)
	}
	if _, err := sub.Topic().Produce(ctx, client.Message{Value: []byte("hello")}); err != nil {
		panic(err)
	}

	err := sub.Handle(ctx, 4, func(ctx context.Context, msg *client.Delivery) error {
		// ctx ends when another consumer may have the message.
		fmt.Println("sending", string(msg.Value))
		stop()
		return nil // acknowledges the message; an error would return it
	})
	if err != nil {
		panic(err)
	}
	// Output: sending hello
}

// Produce many messages in few calls. A lost response causes no duplicates.
func ExampleProducer() {
	ctx := context.Background()
	c := connect()
	defer c.Close()
	topic := c.Topic("example-readings")
	if err := topic.Create(ctx, client.TopicOptions{Partitions: 2}); err != nil && !errors.Is(err, client.ErrConflict) {
		panic(err)
	}

	p := topic.NewProducer(client.ProducerOptions{Linger: 10 * time.Millisecond})
	for i := range 1000 {
		m := client.Message{Key: fmt.Sprint("sensor-", i%10), Value: fmt.Append(nil, i), EventTime: time.Now()}
		if err := p.Send(ctx, m, nil); err != nil {
			panic(err)
		}
	}
	if err := p.Close(ctx); err != nil { // waits until all are stored
		panic(err)
	}

	count := 0
	for _, err := range topic.Read(ctx, client.Earliest) {
		if err != nil {
			panic(err)
		}
		count++
	}
	fmt.Println(count)
	// Output: 1000
}

// Sign in with the credentials of a service account: the client requests and renews its tokens automatically.
func ExampleClientCredentials() {
	credentials, err := client.ReadCredentials(os.Getenv("FRESHET_CREDENTIALS_FILE"))
	if err != nil {
		panic(err)
	}
	tokens, err := client.ClientCredentials(credentials, client.CredentialsOptions{
		TokenURL: os.Getenv("FRESHET_SERVER") + "/oauth/token",
		Audience: "urn:vendor:messaging:default:default", // organization and instance
	})
	if err != nil {
		panic(err)
	}
	c, err := client.New(client.Config{BaseURL: os.Getenv("FRESHET_SERVER"), TokenSource: tokens})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	if _, err := c.Topics(context.Background(), ""); err != nil {
		panic(err)
	}
	fmt.Println("signed in")
	// Output: signed in
}

// Compare an error with a sentinel, and read its details.
func ExampleError() {
	c := connect()
	defer c.Close()
	_, err := c.Topic("nowhere").Produce(context.Background(), client.Message{Value: []byte("v")})
	fmt.Println(errors.Is(err, client.ErrNotFound))
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Message)
	}
	// Output:
	// true
	// 404 topic does not exist
}
