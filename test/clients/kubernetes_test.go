package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"freshet/test/testserver"
)

// TestKubernetesClients runs the official Kubernetes clients for Python and JavaScript
// with the unchanged output of `freshet kubeconfig`, as a new user does.
func TestKubernetesClients(t *testing.T) {
	t.Parallel()
	need(t)
	folder := t.TempDir()
	binary, err := testserver.Binary(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	server, err := testserver.Start(t.Context(), binary, folder, testserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	printed, err := exec.CommandContext(t.Context(), binary, "kubeconfig", "--data-dir", server.DataDir).Output()
	if err != nil {
		t.Fatalf("freshet kubeconfig: %v", err)
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, printed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(folder, "client"), withoutModules("kubernetes")); err != nil {
		t.Fatal(err)
	}
	work := func(t *testing.T, name string, args ...string) ([]byte, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = filepath.Join(folder, "client")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		return cmd.CombinedOutput()
	}
	t.Run("Python", func(t *testing.T) {
		need(t, "python3")
		if out, err := work(t, "python3", "-m", "venv", "venv"); err != nil {
			t.Skipf("NOT TESTED: python3 cannot create a virtual environment (Debian: python3-venv): %v\n%s", err, out)
		}
		python := filepath.Join(folder, "client", "venv", "bin", "python")
		install := []string{"-m", "pip", "install", "--quiet", "--no-compile", "-r", "requirements.txt"}
		if out, err := work(t, python, install...); err != nil {
			t.Skipf("NOT TESTED: pip cannot download the client: %v\n%s", err, out)
		}
		if out, err := work(t, python, "client.py"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("JavaScript", func(t *testing.T) {
		need(t, "node", "npm")
		if out, err := work(t, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"); err != nil {
			t.Skipf("NOT TESTED: npm cannot download the client: %v\n%s", err, out)
		}
		if out, err := work(t, "node", "client.mjs"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
