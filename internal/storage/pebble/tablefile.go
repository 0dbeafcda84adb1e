package pebble

import (
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableFile is a table that is being written. It leaves the last bytes of the disk to the
// log and the manifest: without space for those the store fails permanently, while a flush
// or compaction that fails for lack of space is retried.
//
// Only the goroutine that writes the table calls Write.
type tableFile struct {
	vfs.File
	disk    *diskSpace
	granted int64 // bytes that may be written before the next check of the disk
}

const (
	// tableCheckBytes is how much of a table is written between two checks of the disk.
	tableCheckBytes = 256 << 10
	// maxTableReserve is the maximum free space that tables leave.
	maxTableReserve   = 4 << 20
	tableReserveShare = 8 // tables leave at most this fraction (1/tableReserveShare) of the reserve
)

// Write implements vfs.File.
func (f *tableFile) Write(p []byte) (int, error) {
	if f.granted -= int64(len(p)); f.granted < 0 {
		if !f.disk.admitsTable(int64(len(p)) + tableCheckBytes) {
			return 0, fmt.Errorf("remaining disk space is reserved for the log: %w", syscall.ENOSPC)
		}
		f.granted = tableCheckBytes
	}
	return f.File.Write(p)
}

// admitsTable reports whether tables may grow by size bytes. It returns true when the file
// system does not report its free space.
func (d *diskSpace) admitsTable(size int64) bool {
	if d.s.opts.MinFreeBytes < 0 {
		return true
	}
	usage, err := d.s.fs.GetDiskUsage(d.s.dir)
	if err != nil {
		return true
	}
	kept := min(maxTableReserve, d.reserve(usage.TotalBytes)/tableReserveShare)
	return usage.AvailBytes >= kept+uint64(size)
}
