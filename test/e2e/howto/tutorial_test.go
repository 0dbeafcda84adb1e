package howto_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/testserver"
)

// TestTutorial runs the commands of the tutorial in the folder of a new server, and then the checks of the pages
// about production and hardening.
func TestTutorial(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	script := commands(t, "../../../docs/tutorial.md", "../../../docs/howto/production.md",
		"../../../docs/howto/hardening.md", "../../../docs/howto/sizing.md")
	if strings.Count(script, "\nfreshet ") < 40 {
		t.Fatalf("tutorial has fewer than 40 commands:\n%s", script)
	}
	folder := t.TempDir()
	binary, err := testserver.Binary(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(folder, "freshet")); err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(t.Context(), binary, folder,
		testserver.Options{DataDir: filepath.Join(folder, "freshet-data"), Kafka: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	})
	out := shell(t, script, folder, "HOME="+folder, "XDG_CONFIG_HOME=", "FRESHET_CONFIG=")
	for _, want := range []string{
		"alice  {\"order\": 1, \"item\": \"flat white\"}", // the accountant
		"some failed\nthis is not an order\n",             // the dead letter
		"rejected\n{\"order\":7,\"item\":\"mocha\"}\n",    // of two messages, the one that fits its schema
		"not compatible\n", "✓ compatible with menu-orders-value", "as version 2",
		"/oauth/link?token=",
		"lacks permission messaging.topics.", "denied\n", "API key has been revoked", "revoked\n",
		"backup is valid: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output does not contain %q", want)
		}
	}
	if n := strings.Count(out, `{"order": 5, "item": "tea"}`); n != 2 {
		t.Errorf("tea was printed %d times, want twice: returned, then acknowledged", n)
	}
	if t.Failed() {
		t.Log(out)
	}
}
