// Package atomicfile writes, copies and removes files and directories so that a crash at any moment
// leaves the old state or the new one, and never a part.
//
// It owns the order of writing, syncing and renaming. It uses the file system of the operating
// system; storage/pebble has its own for stores, which tests replace. It has no locks: callers
// exclude each other.
package atomicfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// filePermission is the mode of new files: they are the server's own, and some are secret.
const filePermission = 0o600

// Replace writes a complete, synced file to path, in place of an older one. The file has mode 0600
// unless prepare, which is called before the file appears under its name, changes that.
func Replace(path string, data []byte, prepare ...func(*os.File) error) error {
	return install(path, data, os.Rename, prepare...)
}

// Create writes a complete, synced file with mode 0600 to path, or returns fs.ErrExist.
func Create(path string, data []byte) error { return install(path, data, os.Link) }

func install(path string, data []byte, move func(from, to string) error, prepare ...func(*os.File) error) error {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // does not exist any more after a rename
	_, err = temp.Write(data)
	for _, change := range prepare {
		if err == nil {
			err = change(temp)
		}
	}
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := move(temp.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// WriteNew writes a new, synced file with mode 0600. It returns fs.ErrExist if the file exists. A
// crash can leave a part of it, so the caller must not rely on it before WriteNew returns.
func WriteNew(path string, content io.Reader) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePermission)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Sync(), out.Close())
}

// WriteNewBytes is WriteNew for a slice.
func WriteNewBytes(path string, data []byte) error { return WriteNew(path, bytes.NewReader(data)) }

// Copy copies a file to a new, synced file, like WriteNew.
func Copy(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	return WriteNew(to, in)
}

// SyncDir syncs a directory, so that files that were created, renamed or removed in it survive a
// crash.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SyncDirs syncs a directory and all directories below it.
func SyncDirs(dir string) error {
	return filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return SyncDir(at)
	})
}

// RemoveDir removes a directory. It first renames it to aside, in the same directory, so that a
// crash never leaves an incomplete directory under its name; the next call removes the rest. A
// directory that does not exist is no error.
func RemoveDir(dir, aside string) error {
	if err := os.RemoveAll(aside); err != nil { // left by a crash
		return err
	}
	if err := Rename(dir, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(aside)
}

// Rename renames a file or directory and syncs the directory of the new name.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}
