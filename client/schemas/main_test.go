package schemas_test

import (
	"os"
	"testing"

	"freshet.dev/client"
	"freshet.dev/client/internal/livetest"
	"freshet.dev/client/schemas"
)

func TestMain(m *testing.M) { os.Exit(livetest.Run(m)) }

// live returns a client of a cluster of the real server; "" is the default cluster.
func live(t *testing.T, organization, cluster string) *client.Client {
	t.Helper()
	url, token := livetest.Server(t)
	c, err := client.New(client.Config{
		BaseURL: url, TokenSource: client.StaticToken(token), Organization: organization, Cluster: cluster,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func registry(t *testing.T) *schemas.Registry {
	t.Helper()
	return schemas.New(live(t, "", ""))
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
