package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDataDirectoryIsLocked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(dir)
	if err == nil {
		t.Fatal("second Acquire succeeds, want an error")
	}
	for _, want := range []string{dir, "pid ", "--data-dir"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Acquire(dir)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

// TestHold checks that Hold respects the lock of a server, and neither creates nor changes a
// file, because it is for directories of stopped servers.
func TestHold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	untouched, err := Hold(dir)
	if err != nil {
		t.Fatalf("directory without a lock file: got %v, want nil", err)
	}
	if err := untouched.Release(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("directory contains %v, %v after Hold, want nothing", left, err)
	}
	server, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Hold(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("directory of a running server: got %v, want %v", err, ErrInUse)
	}
	if err := server.Release(); err != nil {
		t.Fatal(err)
	}
	held, err := Hold(dir)
	if err != nil {
		t.Fatalf("directory of a stopped server: got %v, want nil", err)
	}
	if _, err := Acquire(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("server on a held directory: got %v, want %v", err, ErrInUse)
	}
	if err := held.Release(); err != nil {
		t.Error(err)
	}
}
