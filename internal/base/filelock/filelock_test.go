package filelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"freshet/internal/base/filelock"
)

// TestLocks checks which locks exclude each other. Two open files have separate locks, as those of two processes.
func TestLocks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	first, second := open(), open()
	if err := filelock.Try(first); err != nil {
		t.Fatalf("lock of an unlocked file: got %v, want none", err)
	}
	if err := filelock.Try(second); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("second exclusive lock: got %v, want ErrHeld", err)
	}
	if err := filelock.TryShared(second); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("shared lock beside an exclusive one: got %v, want ErrHeld", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- filelock.Lock(second) }()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("waiting for a lock that is released: got %v, want none", err)
	}
	third, fourth := open(), open()
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []*os.File{third, fourth} {
		if err := filelock.TryShared(file); err != nil {
			t.Errorf("shared locks: got %v, want none", err)
		}
	}
}
