package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecondProcessIsKeptOffTheDataDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockDir(dir)
	if err == nil {
		t.Fatal("two locks at the same time")
	}
	for _, want := range []string{dir, "pid ", "--data-dir"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
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
		t.Errorf("%d characters are too few", len(first))
	}
	second, err := secretFile(path)
	if err != nil || second != first {
		t.Errorf("the second read gives another secret: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %o", mode)
	}
}

func TestEmptySecretFileIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secretFile(path); err == nil {
		t.Error("an empty token was accepted: anybody would be the administrator")
	}
}
