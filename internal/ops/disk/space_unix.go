//go:build unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

func space(dir string) (total, free int64, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, 0, err
	}
	block := int64(disk.Bsize) //nolint:unconvert // its type depends on the system
	return int64(disk.Blocks) * block, int64(disk.Bavail) * block, nil
}

// claimFile allocates the disk space of a file up to its size plus ahead bytes.
func claimFile(path string, ahead int64) error {
	var info syscall.Stat_t
	if err := syscall.Stat(path, &info); err != nil || info.Blocks*512 >= info.Size+ahead {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(allocateAhead(file, info.Size+ahead), file.Close())
}
