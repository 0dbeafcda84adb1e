package pebble

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// TestTablesLeaveDiskReserve checks that a flush does not use the disk space that the log and the
// manifest need, and that it succeeds once there is enough space.
func TestTablesLeaveDiskReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		fs := vfs.NewMem()
		free := func(n uint64) {
			fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 40, UsedBytes: 1<<40 - n})
		}
		free(1 << 30)
		e, err := Open("store", Options{FS: fs, MinFreeBytes: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
		free(maxTableReserve)
		file, err := e.failStop.Create("store/999999.sst", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("write to a table on a full disk: got %v, want ENOSPC", err)
		}
		if err := errors.Join(file.Close(), fs.Remove("store/999999.sst")); err != nil {
			t.Error(err)
		}
		flushed, err := e.db.AsyncFlush()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		select {
		case <-flushed:
			t.Error("flush on a full disk: got it completed, want it to wait")
		default:
		}
		if err := e.Health(); err != nil {
			t.Errorf("health after a flush without disk space: got error %v, want none", err)
		}
		free(maxTableReserve + 1<<20)
		<-flushed
	})
}
