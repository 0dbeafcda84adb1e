package server

import (
	"os"
	"path/filepath"
	"testing"

	"freshet/internal/controlplane/etcd"
)

// TestDiskReserve checks the size of the reserve file while the server runs, and after it has
// stopped. test/e2e/faults tests a full disk.
func TestDiskReserve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	size := func(when string, want int64) {
		t.Helper()
		info, err := os.Stat(filepath.Join(dir, reserveFile))
		if err != nil || info.Size() != want {
			t.Errorf("%s: got %v, %v, want a file of %d bytes", when, info, err, want)
		}
	}
	for range 2 {
		r := openDiskReserve(dir)
		if err := r.maintain(); err != nil {
			t.Fatal(err)
		}
		size("running", r.size)
		if !r.hasSpace() {
			t.Error("has = false, want true")
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
		size("stopped", r.size+etcd.Segment)
	}
	// Without own, the directory may belong to another process and is not changed.
	other := openDiskReserve(dir)
	if err := other.close(); err != nil {
		t.Fatal(err)
	}
	size("not owned", other.size+etcd.Segment)
}
