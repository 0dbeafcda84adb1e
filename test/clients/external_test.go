package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// run runs a program in a folder, with the address of the registry in its environment.
func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	url, token := target(t)
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "FRESHET_SERVER="+url, "FRESHET_TOKEN="+token, "CGO_ENABLED=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	t.Logf("%s", out)
}

// need skips the test if FRESHET_TEST_CLIENTS is not set or a program is not installed.
func need(t *testing.T, programs ...string) {
	t.Helper()
	if os.Getenv("FRESHET_TEST_CLIENTS") == "" {
		t.Skip("NOT TESTED: FRESHET_TEST_CLIENTS is not set; make test sets it")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("NOT TESTED: %s is not installed", p)
		}
	}
}

func TestConfluentGo(t *testing.T) {
	t.Parallel()
	need(t, "go", "gcc")
	run(t, "confluent", "go", "test", "-count=1", "./...")
}

func TestNode(t *testing.T) {
	t.Parallel()
	need(t, "node", "npm")
	// A copy, so that the packages that npm downloads stay out of the tree.
	folder := t.TempDir()
	if err := os.CopyFS(folder, withoutModules("node")); err != nil {
		t.Fatal(err)
	}
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = folder
	if out, err := npm.CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: npm cannot download the clients: %v\n%s", err, out)
	}
	for _, script := range []string{"confluent.test.js", "kafkajs.test.js"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			run(t, folder, "node", "--test", filepath.Join(folder, script))
		})
	}
}
