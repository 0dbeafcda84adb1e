package identity_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"freshet/test/pages"
)

// TestHowTo runs the commands in docs/howto/api-keys.md unchanged.
func TestHowTo(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "openssl", "jq", "node"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	w := newWorld(t)
	page, err := os.ReadFile("../../../docs/howto/api-keys.md")
	if err != nil {
		t.Fatal(err)
	}
	script := pages.Commands(string(page))
	if strings.Count(script, "\n") < 60 {
		t.Fatalf("page has fewer than 60 commands:\n%s", script)
	}
	howto, err := filepath.Abs("../../../docs/howto")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a page can be repeated
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		cmd.Env = append(os.Environ(), "FRESHET_SERVER="+w.server.URL, "FRESHET_DATA="+w.server.DataDir,
			"FRESHET_HOWTO="+howto, "FRESHET_ORG="+w.org, "TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{
			`{"type":"Issued","status":"True","reason":"Issued"}` + "\n" +
				`{"type":"Expired","status":"False","reason":"NotExpired"}` + "\n" +
				`{"type":"Revoked","status":"False","reason":"NotRevoked"}`,
			"one order",
			`"revoked":"True"`,
		} {
			if !strings.Contains(string(out), want) {
				t.Errorf("output does not contain %q:\n%s", want, out)
			}
		}
		w.get("serviceaccounts/app").want(404)
		w.get("messaginginstances/demo").want(404)
	}
}

// TestHowToProgram checks the size of the program that the page states.
func TestHowToProgram(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/howto/decrypt.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 22 {
		t.Errorf("program has %d lines, want at most 22", n)
	}
}
