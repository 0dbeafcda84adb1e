package disk

import (
	"fmt"
	"path/filepath"
	"syscall"
)

// Space returns the size and the free space of the file system of the data directory.
func (r *Reserve) Space() (total, free int64, err error) { return Space(filepath.Dir(r.path)) }

// Space returns the size and the free space of the file system of a directory.
func Space(dir string) (total, free int64, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, 0, fmt.Errorf("reading the size of the disk: %w", err)
	}
	block := int64(disk.Bsize) //nolint:unconvert // its type depends on the system
	return int64(disk.Blocks) * block, int64(disk.Bavail) * block, nil
}
