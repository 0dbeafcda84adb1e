package pebble

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/base/cleanclose"
	"freshet/internal/storage/engine"
)

// checkIntact returns an error when files of the store are missing or damaged. It detects
// damage that Pebble would take for an empty store, or for a log that a crash truncated.
// Damage inside tables is detected when they are read. unchanged means that the tables, too, are as they
// were when the store was closed properly, or that there are none.
func checkIntact(fs vfs.FS, dir string, mustExist bool) (unchanged bool, err error) {
	names, err := fs.List(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	var logs, manifests, tables int
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, ".sst"):
			tables++
		case strings.HasSuffix(name, ".log"):
			logs++
		case strings.HasPrefix(name, "marker.manifest."):
			manifests++
		}
	}
	switch {
	case manifests == 0 && logs+tables > 0:
		return false, fmt.Errorf("%w: store has %d logs and %d tables but no manifest", engine.ErrCorrupt, logs, tables)
	case manifests == 0 && mustExist:
		return false, fmt.Errorf("%w: store is missing", engine.ErrCorrupt)
	case manifests == 0:
		return true, nil // a new store
	}
	if err := condemned(fs, dir, names); err != nil {
		return false, err
	}
	known, err := cleanclose.Verify(folder{fs, dir})
	if err != nil {
		return false, fmt.Errorf("%w: %w; if you replaced them on purpose, remove the file %s", engine.ErrCorrupt, err,
			cleanclose.Name)
	}
	if known {
		return unchangedSinceClose(fs, dir, names)
	}
	desc, err := cdb.Peek(dir, fs)
	if err != nil {
		return false, storeError(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") || fs.PathBase(desc.ManifestFilename) == name {
			if err := scanLog(fs, fs.PathJoin(dir, name)); err != nil {
				return false, err
			}
		}
	}
	return tables == 0, nil
}

// recordClose records the sizes and checksums of the files of the closed store. Tables are
// left out: Pebble stores their sizes, and every block has a checksum.
func recordClose(fs vfs.FS, dir string) error {
	all, err := fs.List(dir)
	if err != nil {
		return err
	}
	var names []string
	for _, name := range all {
		if strings.HasSuffix(name, ".sst") || name == "LOCK" || name == cleanclose.Name ||
			strings.HasSuffix(name, tempSuffix) {
			continue
		}
		if info, err := fs.Stat(fs.PathJoin(dir, name)); err == nil && !info.IsDir() {
			names = append(names, name)
		}
	}
	return cleanclose.Write(folder{fs, dir}, names)
}

const tempSuffix = ".new"

// folder implements cleanclose.FS on the store's directory.
type folder struct {
	fs  vfs.FS
	dir string
}

// Open implements cleanclose.FS.
func (f folder) Open(name string) (io.ReadCloser, error) {
	return f.fs.Open(f.fs.PathJoin(f.dir, name))
}

// Write implements cleanclose.FS.
func (f folder) Write(name string, data []byte) error {
	path := f.fs.PathJoin(f.dir, name)
	file, err := f.fs.Create(path+tempSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := f.fs.Rename(path+tempSuffix, path); err != nil {
		return err
	}
	return f.sync()
}

// Remove implements cleanclose.FS.
func (f folder) Remove(name string) error {
	if err := f.fs.Remove(f.fs.PathJoin(f.dir, name)); err != nil {
		return err
	}
	return f.sync()
}

func (f folder) sync() error {
	dir, err := f.fs.OpenDir(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
