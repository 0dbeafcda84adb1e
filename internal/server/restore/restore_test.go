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

// TestFirstStart checks which clusters may have no store: those that were not in the backup, until
// the end of the first start.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	never, err := OpenFirstStart(dir)
	if err != nil {
		t.Fatal(err)
	}
	if never.MayHaveNoStore("a") {
		t.Error("directory that was not restored: cluster a may have no store, want that it must")
	}
	if err := errors.Join(never.Finish(), os.MkdirAll(filepath.Join(dir, backup.ClustersDir, "a"), 0o700),
		writeRestored(dir)); err != nil {
		t.Fatal(err)
	}
	first, err := OpenFirstStart(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !first.IsFirstStart("a") || first.IsFirstStart("b") || never.IsFirstStart("a") {
		t.Error("want the first start of the restored cluster only")
	}
	if first.MayHaveNoStore("a") || !first.MayHaveNoStore("b") {
		t.Error("first start: want that cluster a must have a store, and b need not")
	}
	if err := first.Finish(); err != nil {
		t.Fatal(err)
	}
	if first.MayHaveNoStore("b") || first.IsFirstStart("a") {
		t.Error("after the first start: cluster b may have no store, want that it must")
	}
	if _, err := os.Stat(filepath.Join(dir, restoredFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s after the first start: got %v, want no file", restoredFile, err)
	}
	if err := os.WriteFile(filepath.Join(dir, restoredFile), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFirstStart(dir); err == nil {
		t.Errorf("damaged %s: got no error", restoredFile)
	}
}
