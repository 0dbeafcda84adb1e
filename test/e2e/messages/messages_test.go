// Package messages tests the message API of the real binary: the example of
// docs/spec/messages.md with curl, and producers and consumers that continue while the
// server is killed repeatedly.
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

// TestUsageOrder runs examples/messages.sh.
func TestUsageOrder(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT TESTED: curl is not installed, so examples/messages.sh was not run")
	}
	server := start(t, testserver.Options{})
	defer func() {
		if err := server.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	}()
	cmd := exec.CommandContext(t.Context(), "bash", "../../../examples/messages.sh")
	cmd.Env = append(os.Environ(), "FRESHET_SERVER="+server.URL, "FRESHET_API_KEY="+server.Token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, server.Log())
	}
	t.Logf("%s", out)
}
