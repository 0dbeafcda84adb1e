// Package attack holds attacks on the real binary: each test does what somebody
// with one account, or with a shell as another user of the machine, would do,
// counts attempts and successes, and fails when there was a success. Attacks on
// one package stand beside its code; all of them are called TestAttack….
package attack

import (
	"os"
	"testing"

	"freshet/test/testserver"
)

// binary is the server that every test starts.
var binary string

func TestMain(m *testing.M) {
	if probing := os.Getenv(probeVariable); probing != "" {
		os.Exit(probe(probing))
	}
	testserver.Main(m, &binary)
}

// start runs a server until the test ends.
func start(t *testing.T, opts testserver.Options) *testserver.Server {
	t.Helper()
	server, err := testserver.Start(t.Context(), binary, t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	return server
}
