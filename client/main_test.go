package client_test

import (
	"os"
	"testing"

	"freshet.dev/client"
	"freshet.dev/client/internal/livetest"
)

func TestMain(m *testing.M) { os.Exit(livetest.Run(m)) }

// live returns a client of the real server.
func live(t *testing.T) *client.Client {
	t.Helper()
	url, token := livetest.Server(t)
	c, err := client.New(client.Config{BaseURL: url, TokenSource: client.StaticToken(token)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newTopic creates a topic and a subscription that starts at Earliest.
func newTopic(t *testing.T, name string, partitions int,
	options client.SubscriptionOptions,
) (*client.Topic, *client.Subscription) {
	t.Helper()
	topic := live(t).Topic(name)
	if err := topic.Create(t.Context(), client.TopicOptions{Partitions: partitions}); err != nil {
		t.Fatal(err)
	}
	sub := topic.Subscription("sub")
	options.From = client.Earliest
	if err := sub.Create(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	return topic, sub
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
