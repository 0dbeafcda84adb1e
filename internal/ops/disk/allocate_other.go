//go:build !linux

package disk

import (
	"io"
	"os"
)

// allocate makes a file size bytes long, with allocated disk space: it writes zeros, because the call
// for it exists on Linux only.
func allocate(file *os.File, size int64) error {
	at, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	zeros := make([]byte, 1<<20)
	for at < size {
		n, err := file.Write(zeros[:min(int64(len(zeros)), size-at)])
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// allocateAhead does nothing: without the call of Linux, space beyond the end of a file cannot be
// allocated.
func allocateAhead(*os.File, int64) error { return nil }
