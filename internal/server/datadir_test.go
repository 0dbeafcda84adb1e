package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDataDirectoryIsLocked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockDir(dir)
	if err == nil {
		t.Fatal("second lockDir succeeds, want an error")
	}
	for _, want := range []string{dir, "pid ", "--data-dir"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	again, err := lockDir(dir)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := again.release(); err != nil {
		t.Error(err)
	}
}

func TestSecretFileIsMadeOnceAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	first, err := secretFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) < 40 {
		t.Errorf("secret has %d characters, want at least 40", len(first))
	}
	second, err := secretFile(path)
	if err != nil || second != first {
		t.Errorf("second call: got another secret, error %v", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("file has mode %o, want 600", mode)
	}
}

func TestEmptySecretFileIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secretFile(path); err == nil {
		t.Error("secretFile accepts an empty token, with which every client would be the administrator")
	}
}
