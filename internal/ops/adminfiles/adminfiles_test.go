package adminfiles

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, []byte("-----BEGIN CERTIFICATE-----"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := Files{Dir: dir, Server: "https://localhost:8443", CAFile: ca, Namespace: "acme"}
	if files.Exist() {
		t.Error("Exist = true before the first start, want false")
	}
	if err := files.Write([]byte(`{"client_id":"x"}`)); err != nil {
		t.Fatal(err)
	}
	if !files.Exist() {
		t.Error("Exist = false after the first start, want true")
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	config := read(Kubeconfig)
	for _, want := range []string{"https://localhost:8443", "acme", read(Token), "certificate-authority-data"} {
		if !strings.Contains(config, want) {
			t.Errorf("kubeconfig does not contain %q:\n%s", want, config)
		}
	}
	// Files that have not changed are not written again.
	old := time.Unix(1_000_000, 0)
	for _, name := range []string{Credentials, Kubeconfig} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Write([]byte(`{"client_id":"y"}`)); err != nil {
		t.Fatal(err)
	}
	if got := read(Credentials); got != `{"client_id":"y"}` {
		t.Errorf("%s contains %q, want the new credentials", Credentials, got)
	}
	if info, err := os.Stat(filepath.Join(dir, Kubeconfig)); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("kubeconfig was written again: %v, %v", info, err)
	}
	// Without TLS, a kubeconfig would not work.
	files.Server, files.CAFile = "", ""
	if err := files.Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, Kubeconfig)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("kubeconfig without TLS: got %v, want no file", err)
	}
}
