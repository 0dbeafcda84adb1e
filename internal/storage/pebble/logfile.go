package pebble

import "github.com/cockroachdb/pebble/v2/vfs"

// logFile is a write-ahead log that takes disk space as it grows. Pebble would
// take room for a whole write buffer, 70 MiB, with the first record, which a
// store that is hardly used never needs: 200 new clusters took 14 GiB.
//
// Space is still taken ahead of what is written, so that most writes change
// nothing about the file but its end: at first a little, then as much again as
// there is.
//
// Only the goroutine that writes the log calls Write.
type logFile struct {
	vfs.File
	written  int64
	reserved int64 // how far space is taken
}

// How much space is taken at once.
const (
	leastReserved = 64 << 10
	mostReserved  = 16 << 20
)

// reusedLog is a log that is written over an old one, whose space it has.
func reusedLog(file vfs.File) *logFile {
	f := &logFile{File: file}
	if info, err := file.Stat(); err == nil {
		f.reserved = info.Size()
	}
	return f
}

// Preallocate implements vfs.File. What Pebble asks for is more than it may need.
func (*logFile) Preallocate(int64, int64) error { return nil }

// Write implements vfs.File.
func (f *logFile) Write(p []byte) (int, error) {
	if end := f.written + int64(len(p)); end > f.reserved {
		length := max(end-f.reserved, min(max(f.written, leastReserved), mostReserved))
		_ = f.File.Preallocate(f.reserved, length) // a disk without room says so when it is written to
		f.reserved += length
	}
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}
