package pebble

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fuse is the file system as Pebble sees it. When the write-ahead log, the
// manifest or the directory cannot be written or synced, it fails the engine,
// and the goroutine that tried never comes back.
//
// Pebble would take the error too, but not well: it panics on some paths with
// its own locks held or let go, which ends the process, and whoever retries an
// fsync after a failure believes in data that is gone. A goroutine that waits
// for ever harms nobody: callers were told of the failure by then.
//
// Tables are not guarded: Pebble writes them anew when that fails.
type fuse struct {
	vfs.FS
	e     *Engine
	armed atomic.Bool // while the store is open; before and after, errors are returned
	blown atomic.Bool
}

// check blows the fuse when err is one.
func (f *fuse) check(what, name string, err error) error {
	if err == nil || !f.armed.Load() {
		return err
	}
	f.blown.Store(true)
	f.e.fail(fmt.Errorf("%s %s: %w", what, name, err))
	select {}
}

// guards says whether the file is one that must not fail.
func (f *fuse) guards(name string) bool {
	base := f.PathBase(name)
	return strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST") || strings.HasPrefix(base, "marker.")
}

// Unwrap implements vfs.FS.
func (f *fuse) Unwrap() vfs.FS { return f.FS }

// Create implements vfs.FS.
func (f *fuse) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	return f.wrap("create", name, file, err)
}

// ReuseForWrite implements vfs.FS.
func (f *fuse) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(oldname, newname, category)
	return f.wrap("create", newname, file, err)
}

// OpenDir implements vfs.FS.
func (f *fuse) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &fusedFile{file, f, name}, nil
}

func (f *fuse) wrap(what, name string, file vfs.File, err error) (vfs.File, error) {
	if !f.guards(name) {
		return file, err
	}
	if err := f.check(what, name, err); err != nil {
		return nil, err
	}
	return &fusedFile{file, f, name}, nil
}

// fusedFile is a file that must not fail.
type fusedFile struct {
	vfs.File
	fuse *fuse
	name string
}

func (f *fusedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fuse.check("write", f.name, err)
}

func (f *fusedFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, f.fuse.check("write", f.name, err)
}

func (f *fusedFile) Sync() error {
	return f.fuse.check("sync", f.name, f.File.Sync())
}

func (f *fusedFile) SyncData() error {
	return f.fuse.check("sync", f.name, f.File.SyncData())
}

func (f *fusedFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fuse.check("sync", f.name, err)
}

func (f *fusedFile) Close() error {
	return f.fuse.check("close", f.name, f.File.Close())
}
