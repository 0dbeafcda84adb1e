package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"freshet/client"
	"freshet/test/testserver"
)

// server is the real one that live tests and examples talk to; binary is what
// others are started from.
var (
	server *testserver.Server
	binary string
)

func TestMain(m *testing.M) {
	testserver.Main(runner(func() int {
		code, err := withServer(m)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}), &binary)
}

type runner func() int

func (r runner) Run() int { return r() }

// withServer runs the tests beside a server. Examples find it by the environment,
// as programs do.
func withServer(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "freshet-client-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if server, err = testserver.Start(context.Background(), binary, dir, testserver.Options{Stream: true}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop(time.Minute)) }()
	for name, value := range map[string]string{
		"FRESHET_URL": server.URL, "FRESHET_TOKEN_FILE": filepath.Join(server.DataDir, "admin.token"),
		"FRESHET_CREDENTIALS_FILE": filepath.Join(server.DataDir, "admin.json"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// live returns a client of the real server.
func live(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: server.URL, TokenSource: client.StaticToken(server.Token)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newTopic makes a topic with a subscription from its beginning.
func newTopic(t *testing.T, name string, partitions int, options client.SubscriptionOptions) (*client.Topic, *client.Subscription) {
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
