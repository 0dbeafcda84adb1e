package restore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"freshet/internal/ops/backup"
)

// TestInterruptedRestore checks that no server starts on an unfinished restore, and that
// the next restore starts again.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{Folder, "etcd"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := CheckFinished(dir); err == nil {
		t.Error("server starts on an unfinished restore, want an error")
	}
	r := &restoration{backup.RestoreOptions{DataDir: dir}}
	if err := errors.Join(r.checkEmpty(), r.clear()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "etcd"), 0o700); err != nil {
		t.Fatalf("files of the earlier run still exist: %v", err)
	}
	if err := r.checkEmpty(); err == nil {
		t.Error("checkEmpty accepts a directory with data")
	}
}
