package cleanclose

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Dir is a directory of the operating system's file system.
type Dir string

// Open implements FS.
func (d Dir) Open(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(string(d), name)) }

// Write implements FS.
func (d Dir) Write(name string, data []byte) error {
	temp, err := os.CreateTemp(string(d), "."+name+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // fails after the rename below has succeeded
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), filepath.Join(string(d), name)); err != nil {
		return err
	}
	return d.sync()
}

// Remove implements FS.
func (d Dir) Remove(name string) error {
	if err := os.Remove(filepath.Join(string(d), name)); err != nil {
		return err
	}
	return d.sync()
}

func (d Dir) sync() error {
	folder, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
