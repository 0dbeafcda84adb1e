// Package messages drives the message interface of the real binary: the usage
// order of docs/spec/messages.md with curl, and producers and consumers that go
// on while the server is killed again and again.
package messages

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"freshet/test/testserver"
)

func start(t *testing.T, opts testserver.Options) *testserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	dir := t.TempDir()
	binary, err := testserver.Binary(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(ctx, binary, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// TestUsageOrder runs the example that is in the documentation.
func TestUsageOrder(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: the example with curl was not run")
	}
	server := start(t, testserver.Options{})
	defer func() {
		if err := server.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	}()
	cmd := exec.CommandContext(t.Context(), "bash", "../../../examples/messages.sh")
	cmd.Env = append(os.Environ(), "BASE_URL="+server.URL, "TOKEN="+server.Token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, server.Log())
	}
	t.Logf("%s", out)
}
