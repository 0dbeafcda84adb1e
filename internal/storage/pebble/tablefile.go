package pebble

import (
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableFile is a table that is being written and leaves the last bytes of the disk
// to the log and the manifest. Without room for those the store fails for good;
// a flush or compaction that finds none is tried again later.
//
// Only the goroutine that writes the table calls Write.
type tableFile struct {
	vfs.File
	disk    *diskSpace
	granted int64 // bytes that may be written before the disk is looked at again
}

const (
	// tableStep is how much of a table is written between two looks at the disk.
	tableStep = 256 << 10
	// mostKept is what tables leave, at most.
	mostKept  = 4 << 20
	keptShare = 8 // of the reserve, at most
)

// Write implements vfs.File.
func (f *tableFile) Write(p []byte) (int, error) {
	if f.granted -= int64(len(p)); f.granted < 0 {
		if !f.disk.takesTable(int64(len(p)) + tableStep) {
			return 0, fmt.Errorf("what is left of the disk is for the log: %w", syscall.ENOSPC)
		}
		f.granted = tableStep
	}
	return f.File.Write(p)
}

// takesTable says whether tables may grow by so many bytes. A file system that
// cannot say how much room it has takes them.
func (d *diskSpace) takesTable(size int64) bool {
	if d.s.opts.MinFreeBytes < 0 {
		return true
	}
	usage, err := d.s.fs.GetDiskUsage(d.s.dir)
	if err != nil {
		return true
	}
	kept := min(mostKept, d.reserve(usage.TotalBytes)/keptShare)
	return usage.AvailBytes >= kept+uint64(size)
}
