package disk

import (
	"errors"
	"os"
	"syscall"
)

// allocate makes a file size bytes long, with allocated disk space.
func allocate(file *os.File, size int64) error { return fallocate(file, 0, size) }

// allocateAhead allocates the disk space of the first size bytes of a file, without changing its
// length.
func allocateAhead(file *os.File, size int64) error {
	const keepSize = 1 // FALLOC_FL_KEEP_SIZE: allocate beyond the end of the file
	return fallocate(file, keepSize, size)
}

// fallocate retries a number of times, because on some file systems a signal undoes the allocation.
func fallocate(file *os.File, mode uint32, size int64) (err error) {
	for range 100 {
		if err = syscall.Fallocate(int(file.Fd()), mode, 0, size); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return err
}
