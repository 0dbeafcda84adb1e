package goclient_test

import (
	"testing"

	"freshet/test/testserver"
)

// binary is the freshet binary.
var binary string

func TestMain(m *testing.M) { testserver.Main(m, &binary) }

// start starts a server that runs until the end of the test.
func start(t *testing.T) *testserver.Server {
	t.Helper()
	server := must[*testserver.Server](t)(testserver.Start(t.Context(), binary, t.TempDir(), testserver.Options{}))
	t.Cleanup(server.Kill)
	return server
}

// environment returns the variables with the address of a server and its administrator's files.
func environment(server *testserver.Server) []string {
	return []string{
		"FRESHET_TEST_SERVER=" + server.URL, "FRESHET_SERVER=" + server.URL,
		"FRESHET_TOKEN_FILE=" + server.DataDir + "/admin.token",
		"FRESHET_CREDENTIALS_FILE=" + server.DataDir + "/admin.json",
	}
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
