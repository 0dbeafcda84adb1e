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

// Segment is how much disk the member takes at once for its log: it always has
// the next segment, before it needs it, so that it can go on for a while when the
// disk is full. It gives that one back when it is closed.
const Segment = 16 << 20

// leastSegment is for a start on a disk that is full: enough to begin with.
const leastSegment = 1 << 20

// segmentOnce: the size is one for the process, and must not change while a member
// runs.
var segmentOnce sync.Once

// claimSegment makes sure that the member finds room for the next segment when it
// opens its log. While it does so it also gives up the unused end of the current
// one for a moment, and takes it anew. Without room for both it would take the one for
// the other, and not start.
func claimSegment(dir string) error {
	logs := filepath.Join(dir, "member", "wal")
	// What a member that was killed had in advance.
	ahead, err := filepath.Glob(filepath.Join(logs, "*.tmp"))
	for _, name := range ahead {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return fmt.Errorf("removing log segments that were never used: %w", err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("asking for the free space: %w", err)
	}
	available := int64(disk.Bavail) * disk.Bsize
	missing, err := fitSegment(logs, max(available/8, leastSegment)) // the rest is for other stores
	if err != nil {
		return fmt.Errorf("looking at the last log segment: %w", err)
	}
	segmentOnce.Do(func() { wal.SegmentSizeBytes = segmentFor(available - missing) })
	return nil
}

// fitSegment shortens the last segment when more space than there is room for is
// missing at its end, and returns what it still misses: a segment for which the space
// could not be taken in one go, as when a signal came in between, is a file with a hole.
func fitSegment(logs string, room int64) (missing int64, err error) {
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
	if missing <= room {
		return missing, nil
	}
	written, err := dataEnd(file, info.Size)
	if err != nil {
		return 0, err
	}
	size := max(written, info.Size-(missing-room))
	return missing - (info.Size - size), file.Truncate(size)
}

// dataEnd is where a file of a size has only a hole up to its end, which reads as
// zeros.
func dataEnd(file *os.File, size int64) (end int64, err error) {
	for end < size {
		data, err := unix.Seek(int(file.Fd()), end, unix.SEEK_DATA)
		if errors.Is(err, syscall.ENXIO) {
			return end, nil // there is nothing behind it
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

// segmentFor leaves others half of a disk that is nearly full.
func segmentFor(available int64) int64 { return min(max(available/2, leastSegment), Segment) }
