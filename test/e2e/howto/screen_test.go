package howto_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/testserver"
)

// screen waits for the server's startup screen and returns its shell commands.
func screen(t *testing.T, server *testserver.Server) string {
	t.Helper()
	for end := time.After(30 * time.Second); ; {
		text, err := os.ReadFile(server.LogFile())
		if err != nil {
			t.Fatal(err)
		}
		_, script, _ := strings.Cut(string(text), "in this folder:\n")
		if script, _, ended := strings.Cut(script, "\nStop it with"); ended && strings.Count(script, "\n") >= 8 {
			return script
		}
		select {
		case <-end:
			t.Fatalf("startup screen has no commands:\n%s", text)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestScreen pastes the commands of the startup screen into a shell, as a user who has a
// context for another server.
func TestScreen(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	kubectl(t)
	folder := t.TempDir()
	binary, err := testserver.Binary(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(folder, ".config", "freshet", "contexts.yaml")
	if err := os.MkdirAll(filepath.Dir(other), 0o700); err != nil {
		t.Fatal(err)
	}
	const elsewhere = "current: other\ncontexts: [{name: other, server: 'http://127.0.0.1:1', organization: " +
		"default, credential: {tokenFile: /nowhere}}]\n"
	if err := os.WriteFile(other, []byte(elsewhere), 0o600); err != nil {
		t.Fatal(err)
	}
	home := []string{"HOME=" + folder, "XDG_CONFIG_HOME=", "FRESHET_CONFIG="}
	server, err := testserver.Start(t.Context(), binary, folder, testserver.Options{Kafka: true, Env: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	})
	script := screen(t, server)
	wants := []string{"hello, stream\n", "/oauth/link?token=", "messagingcluster.cloud.vendor.io/default"}
	if _, err := exec.LookPath("kcat"); err == nil {
		wants = append(wants, `topic "hello"`)
	} else {
		t.Log("kcat is not installed: its command is NOT TESTED")
		script, _, _ = strings.Cut(script, "  kcat ")
	}
	out := shell(t, script, folder, home...)
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("output does not contain %q; commands:\n%s\n%s", want, script, out)
		}
	}
}
