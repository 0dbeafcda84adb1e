package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"go.etcd.io/etcd/server/v3/storage/wal"
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
// one for a moment. Without room for both it would take the one for the other,
// and not start.
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
	segmentOnce.Do(func() { wal.SegmentSizeBytes = segmentFor(int64(disk.Bavail) * disk.Bsize) })
	return nil
}

// segmentFor leaves others half of a disk that is nearly full.
func segmentFor(available int64) int64 { return min(max(available/2, leastSegment), Segment) }
