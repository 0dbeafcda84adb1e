package pebble

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is the file system of stores, for those who copy, replace and remove them. Its methods are like the
// functions of package atomicfile: a crash at any moment leaves the old state or the new one.
type Disk struct{ fs vfs.FS }

// Disk returns the file system of the stores with these options.
func (o Options) Disk() Disk {
	if o.FS == nil {
		return Disk{vfs.Default}
	}
	return Disk{o.FS}
}

const (
	dirPermission = os.FileMode(0o700)
	asideSuffix   = ".old" // of a directory that is being removed
)

// MakeDir creates a directory and those above it.
func (d Disk) MakeDir(dir string) error { return d.fs.MkdirAll(dir, dirPermission) }

// List returns the names in a directory.
func (d Disk) List(dir string) ([]string, error) { return d.fs.List(dir) }

// Remove removes a file or a directory with everything in it. One that does not exist is no error.
func (d Disk) Remove(path string) error { return d.fs.RemoveAll(path) }

// DiskFile is a file that is open for reading.
type DiskFile struct {
	*io.SectionReader
	io.Closer
}

// Open opens a file for reading.
func (d Disk) Open(path string) (*DiskFile, error) {
	f, err := d.fs.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &DiskFile{io.NewSectionReader(f, 0, info.Size()), f}, nil
}

// Continue appends to a file, which it creates if it does not exist, and syncs it. It calls write with the size
// of the file. A file that is larger than limit starts empty.
func (d Disk) Continue(path string, limit int64, write func(out io.Writer, from int64) error) (err error) {
	f, err := d.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Sync(), f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	from := info.Size()
	if from > limit {
		empty, err := d.fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return errors.Join(err, empty.Close())
		}
		f, from = empty, 0
	}
	return write(io.NewOffsetWriter(f, from), from)
}

// Rename renames a file or directory and syncs the directory of the new name.
func (d Disk) Rename(from, to string) error {
	if err := d.fs.Rename(from, to); err != nil {
		return err
	}
	return d.SyncDir(d.fs.PathDir(to))
}

// SyncDir syncs a directory, so that files that were created, renamed or removed in it survive a crash.
func (d Disk) SyncDir(dir string) error { return folder{d.fs, dir}.sync() }

// RemoveStore removes the directory of a store. It renames the directory first, so that a crash cannot leave an
// incomplete store under its name. A directory that does not exist is no error.
func (d Disk) RemoveStore(dir string) error {
	if err := d.fs.RemoveAll(dir + asideSuffix); err != nil { // left by a crash
		return err
	}
	if err := d.Rename(dir, dir+asideSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.fs.RemoveAll(dir + asideSuffix)
}

// ReplaceStore renames the directory of a complete store to dir, and removes the store that was there.
func (d Disk) ReplaceStore(from, dir string) error {
	if err := d.fs.RemoveAll(dir + asideSuffix); err != nil { // left by a crash
		return err
	}
	if err := d.fs.Rename(dir, dir+asideSuffix); err != nil {
		return err
	}
	if err := d.Rename(from, dir); err != nil {
		return err
	}
	return d.fs.RemoveAll(dir + asideSuffix)
}

// VerifyClosed verifies every file of a store with an external log that is not open, such as a
// checkpoint, and returns its log position. Damage is a *FileDamage.
func (d Disk) VerifyClosed(ctx context.Context, dir string) (position []byte, err error) {
	return verifyClosed(ctx, d.fs, dir)
}
