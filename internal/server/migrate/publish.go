package migrate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"freshet/internal/base/atomicfile"
)

// copyFiles copies the other files that the ensemble does not have: the audit log, and the
// list of signing keys to withdraw. The remaining files are in the bundle, or every start
// writes them.
func (m *migration) copyFiles() error {
	for _, pattern := range []string{"audit.log*", "audit-failed.log*", "signing-keys.withdraw"} {
		files, err := filepath.Glob(filepath.Join(m.From, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := copyFile(file, m.newPath(filepath.Base(file))); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// publish moves the new files into the data directory and removes the folder. No server
// starts while the folder exists.
func (m *migration) publish() error {
	err := filepath.WalkDir(m.newPath(), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			//nolint:gosec // a folder has to be entered
			return errors.Join(os.Chmod(path, 0o700), atomicfile.SyncDir(path))
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(m.newPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(m.newPath(e.Name()), filepath.Join(m.to, e.Name())); err != nil {
			return fmt.Errorf("moving %s into the data directory: %w; run the command again", e.Name(), err)
		}
	}
	m.m.Finished = time.Now().UTC().Truncate(time.Second)
	if err := m.saveAs(filepath.Join(m.to, ResultFile)); err != nil {
		return err
	}
	// The manifest is removed last, because it records that everything was compared.
	if err := errors.Join(os.RemoveAll(m.newPath()), os.RemoveAll(m.path("etcd")),
		os.RemoveAll(m.path("etcd.snapshot")),
		atomicfile.SyncDir(m.to), os.RemoveAll(m.path())); err != nil {
		return fmt.Errorf("removing %s: %w; run the command again", m.path(), err)
	}
	return atomicfile.SyncDir(m.to)
}
