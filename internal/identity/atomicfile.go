package identity

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"freshet/internal/base/atomicfile"
)

// replaceFile atomically replaces the file at path with a complete, synced one. The new
// file has the owner and mode of the file like, because root may rotate the keys of a
// server that runs as another user.
func replaceFile(path string, data []byte, like string) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, data, func(f *os.File) error { return copyOwnerAndMode(f, info) })
}

// copyOwnerAndMode sets the owner and the mode of a new file to those of another.
func copyOwnerAndMode(f *os.File, like fs.FileInfo) error {
	if owner, ok := like.Sys().(*syscall.Stat_t); ok {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		mine, _ := info.Sys().(*syscall.Stat_t)
		if mine == nil || mine.Uid != owner.Uid || mine.Gid != owner.Gid {
			if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
				return fmt.Errorf("setting the owner of the file (run this as root or as the server's user): %w", err)
			}
		}
	}
	return f.Chmod(like.Mode().Perm())
}
