package privatefile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSecretFileIsMadeOnceAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	first, err := ReadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) < 40 {
		t.Errorf("secret has %d characters, want at least 40", len(first))
	}
	second, err := ReadOrCreate(path)
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
	if _, err := ReadOrCreate(path); err == nil {
		t.Error("secretFile accepts an empty token, with which every client would be the administrator")
	}
}

// TestSecretWithNewline checks that ReadOrCreate removes a newline that an editor added.
func TestSecretWithNewline(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadOrCreate(path); err != nil || got != "secret" {
		t.Errorf("got %q, %v; want secret", got, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "secret" {
		t.Errorf("file contains %q, %v; want secret without a newline", text, err)
	}
}

// TestWriteReplaces checks that Write replaces a file, also its mode, and leaves no other file.
func TestWriteReplaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := os.WriteFile(path, []byte("old and longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 || info.Size() != 3 {
		t.Errorf("got %v with %d bytes, want mode 600 and 3 bytes", info.Mode(), info.Size())
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("directory contains %v, %v; want one file", files, err)
	}
	if err := Write(filepath.Join(dir, "none", "key"), nil); err == nil {
		t.Error("Write to a folder that does not exist succeeds, want an error")
	}
}
