// Package attack holds attacks on the real binary. Each test acts as an attacker with one
// account, or with a shell as another user of the machine; it counts attempts and
// successes, and fails if there was a success. Attacks on a single package are next to
// its code. All of them are named TestAttack….
package attack

import (
	"os"
	"testing"

	"freshet/test/testserver"
)

// binary is the path of the server binary that every test starts.
var binary string

func TestMain(m *testing.M) {
	if value := os.Getenv(probeVariable); value != "" {
		os.Exit(probe(value))
	}
	testserver.Main(m, &binary)
}

// start runs a server until the end of the test.
func start(t *testing.T, opts testserver.Options) *testserver.Server {
	t.Helper()
	server, err := testserver.Start(t.Context(), binary, t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}
