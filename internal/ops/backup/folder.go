package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
	"freshet/internal/base/filelock"
)

const (
	nameFormat = "20060102T150405.000Z" // sorts by time
	// incompletePrefix is the prefix of a directory that is not a complete backup: it is
	// being written or removed.
	incompletePrefix = ".incomplete-"
	lockFile         = ".lock"
)

var namePattern = regexp.MustCompile(`^\d{8}T\d{6}\.\d{3}Z$`)

// Folder is a directory of backups. Each backup is a subdirectory that is named after its
// time.
type Folder struct {
	dir  string
	lock *os.File
}

// OpenFolder locks a directory for writing and creates it if it does not exist. Only one
// process at a time can write backups to it. OpenFolder removes incomplete backups.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("creating the directory of the backups: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file of the backups: %w", err)
	}
	if err := filelock.Try(lock); err != nil {
		_ = lock.Close() // the lock was not acquired
		if errors.Is(err, filelock.ErrHeld) {
			return nil, errs.Newf(errs.Conflict,
				"another process is writing a backup to %s; try again when it has finished", dir)
		}
		return nil, fmt.Errorf("locking the directory of the backups: %w", err)
	}
	f := &Folder{dir: dir, lock: lock}
	if err := f.removeIncomplete(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close releases the lock.
func (f *Folder) Close() error { return f.lock.Close() }

// removeIncomplete removes incomplete backups.
func (f *Folder) removeIncomplete() error {
	incomplete, err := filepath.Glob(filepath.Join(f.dir, incompletePrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range incomplete {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing an incomplete backup: %w", err)
		}
	}
	return nil
}

// Prune removes the oldest backups until n are left, and returns the names of the removed
// ones.
func (f *Folder) Prune(n int) (removed []string, err error) {
	names, err := List(f.dir)
	if err != nil || len(names) <= n {
		return nil, err
	}
	for _, name := range names[:len(names)-n] {
		// A partly removed backup must not have the name of a complete one.
		removing := filepath.Join(f.dir, incompletePrefix+name)
		if err := atomicfile.RemoveDir(filepath.Join(f.dir, name), removing); err != nil {
			return removed, fmt.Errorf("removing an old backup: %w", err)
		}
		removed = append(removed, name)
	}
	return removed, nil
}

// List returns the names of the complete backups in a directory, oldest first.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing backups: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && namePattern.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Newest returns when the newest backup in a directory started; the zero time if there is
// none.
func Newest(dir string) (time.Time, error) {
	names, err := List(dir)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(names) == 0) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(nameFormat, names[len(names)-1])
}

// Locate returns the directory of a backup. path is that directory, or a directory of
// several backups; then it is the newest one.
func Locate(path string) (string, error) {
	if strings.HasPrefix(filepath.Base(path), incompletePrefix) {
		return "", errs.Newf(errs.Invalid, "%s is not a complete backup; writing it was interrupted", path)
	}
	if _, err := os.Stat(filepath.Join(path, ManifestFile)); err == nil {
		return path, nil
	}
	names, err := List(path)
	if err != nil {
		return "", errs.Newf(errs.NotFound, "%w", err)
	}
	if len(names) == 0 {
		return "", errs.Newf(errs.NotFound, "%s is not a complete backup and contains none", path)
	}
	return filepath.Join(path, names[len(names)-1]), nil
}
