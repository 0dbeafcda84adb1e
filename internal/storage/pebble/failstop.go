package pebble

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failStopFS is Pebble's file system with the fail-stop model: when the write-ahead log,
// the manifest or the directory cannot be written or synced, failStopFS fails the store
// and its engine, and the calling goroutine blocks forever.
//
// Pebble does not handle these errors well: on some paths it panics, with its own locks
// held or released, which ends the process. An fsync that is retried after a failure may
// succeed although the data is lost. A goroutine that blocks forever does no harm, because
// the failure has been reported to the callers by then.
//
// Tables are exempt, because Pebble retries writing them. So is everything outside the
// store's directory: a failed write to a checkpoint affects only the checkpoint.
type failStopFS struct {
	vfs.FS
	s      *store
	active atomic.Bool // set while the store is open; otherwise errors are returned
}

// check fails the store when err is not nil, and then never returns.
func (f *failStopFS) check(what, name string, err error) error {
	if err == nil || !f.active.Load() {
		return err
	}
	f.s.fail(fmt.Errorf("%s %s: %w", what, name, err))
	select {}
}

const logSuffix = ".log"

// mustNotFail reports whether an error of the file fails the store.
func (f *failStopFS) mustNotFail(name string) bool {
	base := f.PathBase(name)
	if f.PathJoin(name) != f.PathJoin(f.s.dir, base) {
		return false // a file of a checkpoint
	}
	return strings.HasSuffix(base, logSuffix) || strings.HasPrefix(base, "MANIFEST") ||
		strings.HasPrefix(base, "marker.")
}

// Unwrap implements vfs.FS.
func (f *failStopFS) Unwrap() vfs.FS { return f.FS }

// Create implements vfs.FS.
func (f *failStopFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		f.s.tables.backOff()
	}
	file, err := f.FS.Create(name, category)
	switch {
	case err != nil:
	case strings.HasSuffix(name, logSuffix):
		file = &logFile{File: file}
	case strings.HasSuffix(name, ".sst"):
		file = &tableFile{File: file, disk: &f.s.disk}
	}
	return f.wrap("create", name, file, err)
}

// ReuseForWrite implements vfs.FS.
func (f *failStopFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(oldname, newname, category)
	if err == nil && strings.HasSuffix(newname, logSuffix) {
		file = reusedLog(file)
	}
	return f.wrap("create", newname, file, err)
}

// OpenDir implements vfs.FS.
func (f *failStopFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil || f.PathJoin(name) != f.PathJoin(f.s.dir) {
		return file, err
	}
	return &failStopFile{file, f, name}, nil
}

func (f *failStopFS) wrap(what, name string, file vfs.File, err error) (vfs.File, error) {
	if !f.mustNotFail(name) {
		return file, err
	}
	if err := f.check(what, name, err); err != nil {
		return nil, err
	}
	return &failStopFile{file, f, name}, nil
}

// failStopFile is a file whose errors fail the store.
type failStopFile struct {
	vfs.File
	fs   *failStopFS
	name string
}

func (f *failStopFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fs.check("write", f.name, err)
}

func (f *failStopFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, f.fs.check("write", f.name, err)
}

func (f *failStopFile) Sync() error {
	return f.fs.check("sync", f.name, f.File.Sync())
}

func (f *failStopFile) SyncData() error {
	return f.fs.check("sync", f.name, f.File.SyncData())
}

func (f *failStopFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.check("sync", f.name, err)
}

func (f *failStopFile) Close() error {
	return f.fs.check("close", f.name, f.File.Close())
}
