package dataplane_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// Limits for the cost of an unused cluster; docs/performance.md has the measured cost.
const (
	idleDisk       = 256 << 10
	idleHeap       = 1 << 20
	idleGoroutines = 24
)

// The test does not run in parallel, because it measures the whole process.
//
//nolint:paralleltest // see above
func TestNewClustersCostLittle(t *testing.T) {
	const clusters = 50
	dir := t.TempDir()
	p := open(t, dir)
	running(t, p, spec("acme", "first")) // allocates what all clusters share
	heap, goroutines := heapNow(), runtime.NumGoroutine()
	for i := range clusters {
		running(t, p, spec("acme", fmt.Sprintf("c%d", i)))
	}
	heap, goroutines = heapNow()-heap, runtime.NumGoroutine()-goroutines
	disk := diskOf(t, dir) / (clusters + 1)
	t.Logf("each of %d clusters: %d bytes of disk, %d bytes of heap, %d goroutines", clusters, disk, heap/clusters,
		goroutines/clusters)
	if disk > idleDisk {
		t.Errorf("disk of a new cluster: got %d bytes, want at most %d", disk, idleDisk)
	}
	if heap/clusters > idleHeap {
		t.Errorf("heap of a new cluster: got %d bytes, want at most %d", heap/clusters, idleHeap)
	}
	if goroutines/clusters > idleGoroutines {
		t.Errorf("goroutines of a new cluster: got %d, want at most %d", goroutines/clusters, idleGoroutines)
	}
}

func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// diskOf returns the disk space that the files of a directory use. It differs from their
// size, because space can be preallocated.
func diskOf(t *testing.T, dir string) (total int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			total += stat.Blocks * 512
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return total
}
