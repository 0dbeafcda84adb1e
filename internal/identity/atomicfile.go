package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// createFile creates a complete, synced file at path, or returns fs.ErrExist.
func createFile(path string, data []byte) error {
	return writeFileAtomically(path, data, nil, os.Link)
}

// replaceFile atomically replaces the file at path with a complete, synced one. The new
// file has the owner and mode of the file like, because root may rotate the keys of a
// server that runs as another user.
func replaceFile(path string, data []byte, like string) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	return writeFileAtomically(path, data, info, os.Rename)
}

// copyOwnerAndMode sets the owner and the mode of a new file to those of another.
func copyOwnerAndMode(f *os.File, like fs.FileInfo) error {
	if like == nil {
		return nil
	}
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

func writeFileAtomically(path string, data []byte, like fs.FileInfo, install func(from, to string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	temp := f.Name()
	defer func() { _ = os.Remove(temp) }() // does not exist any more after a rename
	_, err = f.Write(data)
	if err == nil {
		err = copyOwnerAndMode(f, like)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := install(temp, path); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}
