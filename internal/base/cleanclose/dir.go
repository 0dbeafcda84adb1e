package cleanclose

import (
	"io"
	"os"
	"path/filepath"

	"freshet/internal/base/atomicfile"
)

// Dir is a directory of the operating system's file system.
type Dir string

// Open implements FS.
func (d Dir) Open(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(string(d), name)) }

// Write implements FS.
func (d Dir) Write(name string, data []byte) error {
	return atomicfile.Replace(filepath.Join(string(d), name), data)
}

// Remove implements FS.
func (d Dir) Remove(name string) error {
	if err := os.Remove(filepath.Join(string(d), name)); err != nil {
		return err
	}
	return atomicfile.SyncDir(string(d))
}
