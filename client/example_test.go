package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"freshet/client"
)

// connect is how the examples find their server: by the environment, and with a
// token in a file that may change.
func connect() *client.Client {
	c, err := client.New(client.Config{
		BaseURL:     os.Getenv("FRESHET_URL"),
		TokenSource: client.FileToken(os.Getenv("FRESHET_TOKEN_FILE")),
	})
	if err != nil {
		panic(err)
	}
	return c
}

// A topic, a subscription, one message there and back.
func Example() {
	ctx := context.Background()
	c, err := client.New(client.Config{
		BaseURL:     os.Getenv("FRESHET_URL"),
		TokenSource: client.FileToken(os.Getenv("FRESHET_TOKEN_FILE")),
	})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	topic := c.Topic("example-orders")
	sub := topic.Subscription("billing")
	if err := sub.Create(ctx, client.SubscriptionOptions{}); err != nil { // makes the topic, too
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

// Work that may fail: what fails comes again a little later, and the loop ends
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

// Several messages at a time. When ctx ends, those under way are finished.
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
		// ctx ends when somebody else may have the message.
		fmt.Println("sending", string(msg.Value))
		stop()
		return nil // acknowledges it; an error would give it back
	})
	if err != nil {
		panic(err)
	}
	// Output: sending hello
}

// Many messages in few calls. Lost answers make no duplicates.
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

// A service account's credentials: tokens are asked for and renewed by themselves.
func ExampleClientCredentials() {
	credentials, err := client.ReadCredentials(os.Getenv("FRESHET_CREDENTIALS_FILE"))
	if err != nil {
		panic(err)
	}
	tokens, err := client.ClientCredentials(credentials, client.CredentialsOptions{
		TokenURL: os.Getenv("FRESHET_URL") + "/oauth/token",
		Audience: "urn:vendor:messaging:default:default", // organization and instance
	})
	if err != nil {
		panic(err)
	}
	c, err := client.New(client.Config{BaseURL: os.Getenv("FRESHET_URL"), TokenSource: tokens})
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

// What went wrong, for programs and for people.
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
