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

// What a cluster may cost until it is used; docs/performance.md has what it does.
const (
	idleDisk       = 256 << 10
	idleHeap       = 1 << 20
	idleGoroutines = 24
)

// It runs alone: it measures the whole process.
//
//nolint:paralleltest // see above
func TestNewClustersCostLittle(t *testing.T) {
	const clusters = 50
	dir := t.TempDir()
	p := open(t, dir)
	running(t, p, spec("acme", "first")) // what is made once is made
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

// diskOf is what the files of a folder take on the disk, which is not their
// size: space can be taken ahead.
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
