package schemas_test

import (
	"testing"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/test/testserver"
)

// server is the real server of the tests and examples.
var server *testserver.Server

func TestMain(m *testing.M) {
	var binary string
	testserver.MainServer(m, &binary, &server, testserver.Options{})
}

func registry(t *testing.T) *schemas.Registry {
	t.Helper()
	c, err := client.New(client.Config{BaseURL: server.URL, TokenSource: client.StaticToken(server.Token)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return schemas.New(c)
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
