package pebble

import "github.com/cockroachdb/pebble/v2/vfs"

// logFile is a write-ahead log that allocates disk space as it grows. Pebble would
// allocate the space for a whole write buffer, 70 MiB, with the first record, although a
// store with little load never needs it: 200 new clusters used 14 GiB.
//
// logFile still allocates space ahead of writes, so that most writes do not change the
// file's metadata: at first a little, then as much again as has been written.
//
// Only the goroutine that writes the log calls Write.
type logFile struct {
	vfs.File
	written  int64
	reserved int64 // end of the allocated space
}

// How much space is allocated in one step.
const (
	minPreallocate = 64 << 10
	maxPreallocate = 16 << 20
)

// reusedLog returns a log that overwrites an old one and has its space.
func reusedLog(file vfs.File) *logFile {
	f := &logFile{File: file}
	if info, err := file.Stat(); err == nil {
		f.reserved = info.Size()
	}
	return f
}

// Preallocate implements vfs.File. It does nothing, because Pebble requests more than it
// may need.
func (*logFile) Preallocate(int64, int64) error { return nil }

// Write implements vfs.File.
func (f *logFile) Write(p []byte) (int, error) {
	if end := f.written + int64(len(p)); end > f.reserved {
		length := max(end-f.reserved, min(max(f.written, minPreallocate), maxPreallocate))
		_ = f.File.Preallocate(f.reserved, length) // on a full disk the write below returns the error
		f.reserved += length
	}
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}
