package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"golang.org/x/sys/unix"
)

// Segment is the size of one segment of the member's write-ahead log. The member always allocates
// the next segment before it needs it, so that it can continue for a while on a full disk. It
// releases the unused segment when it is closed.
const Segment = 16 << 20

// minSegment is the segment size on a full disk, enough to start with.
const minSegment = 1 << 20

// segmentOnce sets the segment size once: it is global to the process and must not change while a
// member runs.
var segmentOnce sync.Once

// reserveSegment makes sure that the member has space for the next segment when it opens its log.
// While it opens the log, the member also releases the unused end of the current segment and
// allocates it again. Without space for both, one allocation would take the space of the other, and
// the member would not start.
func reserveSegment(dir string) error {
	logs := filepath.Join(dir, "member", "wal")
	// Segments that a killed member had allocated in advance.
	ahead, err := filepath.Glob(filepath.Join(logs, "*.tmp"))
	for _, name := range ahead {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return fmt.Errorf("removing unused log segments: %w", err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("reading the free disk space: %w", err)
	}
	available := int64(disk.Bavail) * disk.Bsize
	missing, err := fitSegment(logs, max(available/8, minSegment)) // the rest is for other stores
	if err != nil {
		return fmt.Errorf("checking the last log segment: %w", err)
	}
	segmentOnce.Do(func() { wal.SegmentSizeBytes = segmentSize(available - missing) })
	return nil
}

// fitSegment shortens the last segment when more space is missing at its end than the disk has, and
// returns the bytes that it still misses. A segment is a sparse file if its allocation was
// interrupted, for example by a signal.
func fitSegment(logs string, space int64) (missing int64, err error) {
	names, err := filepath.Glob(filepath.Join(logs, "*.wal"))
	if err != nil || len(names) == 0 {
		return 0, err
	}
	file, err := os.OpenFile(slices.Max(names), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var info syscall.Stat_t
	if err := syscall.Fstat(int(file.Fd()), &info); err != nil {
		return 0, err
	}
	missing = max(0, info.Size-info.Blocks*512)
	if missing <= space {
		return missing, nil
	}
	written, err := dataEnd(file, info.Size)
	if err != nil {
		return 0, err
	}
	size := max(written, info.Size-(missing-space))
	return missing - (info.Size - size), file.Truncate(size)
}

// dataEnd returns the position after which a file of the given size consists of a hole only, which
// reads as zeros.
func dataEnd(file *os.File, size int64) (end int64, err error) {
	for end < size {
		data, err := unix.Seek(int(file.Fd()), end, unix.SEEK_DATA)
		if errors.Is(err, syscall.ENXIO) {
			return end, nil // no data after end
		}
		if err != nil {
			return 0, err
		}
		if end, err = unix.Seek(int(file.Fd()), data, unix.SEEK_HOLE); err != nil {
			return 0, err
		}
	}
	return end, nil
}

// segmentSize leaves half of a nearly full disk to others.
func segmentSize(available int64) int64 { return min(max(available/2, minSegment), Segment) }
