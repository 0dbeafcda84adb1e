package schemas_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"freshet/client"
	"freshet/client/schemas"
	"freshet/test/testserver"
)

// server is the real one that the tests and examples talk to.
var server *testserver.Server

func TestMain(m *testing.M) {
	var binary string
	testserver.Main(runner(func() int {
		code, err := withServer(binary, m)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}), &binary)
}

type runner func() int

func (r runner) Run() int { return r() }

func withServer(binary string, m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "freshet-schemas-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if server, err = testserver.Start(context.Background(), binary, dir, testserver.Options{}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop(time.Minute)) }()
	for name, value := range map[string]string{
		"FRESHET_URL": server.URL, "FRESHET_TOKEN_FILE": filepath.Join(server.DataDir, "admin.token"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
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
