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
	"syscall"
	"time"

	"freshet/internal/base/errs"
)

const (
	nameFormat = "20060102T150405.000Z" // sorts by time
	// incompletePrefix begins the name of what is no backup: not yet, or, while it
	// is being removed, no longer.
	incompletePrefix = ".incomplete-"
	lockFile         = ".lock"
)

var namePattern = regexp.MustCompile(`^\d{8}T\d{6}\.\d{3}Z$`)

// A Folder holds backups, each in a folder of its own that is named after its time.
type Folder struct {
	dir  string
	lock *os.File
}

// OpenFolder takes a folder for writing, making it when it is new. Only one
// process writes backups to it at a time. What others left unfinished is removed.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("making the folder of the backups: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the backups: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close() // it was never taken
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errs.Newf(errs.Conflict, "another process writes a backup to %s; try again when it is done",
				dir)
		}
		return nil, fmt.Errorf("locking the folder of the backups: %w", err)
	}
	f := &Folder{dir: dir, lock: lock}
	if err := f.clean(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close lets others write.
func (f *Folder) Close() error { return f.lock.Close() }

// clean removes what was not finished.
func (f *Folder) clean() error {
	left, err := filepath.Glob(filepath.Join(f.dir, incompletePrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing an incomplete backup: %w", err)
		}
	}
	return nil
}

// Keep removes the oldest backups until n are left, and returns their names.
func (f *Folder) Keep(n int) (removed []string, err error) {
	names, err := List(f.dir)
	if err != nil || len(names) <= n {
		return nil, err
	}
	for _, name := range names[:len(names)-n] {
		// Half a backup must not be found under a name that says it is whole.
		gone := filepath.Join(f.dir, incompletePrefix+name)
		if err := errors.Join(os.Rename(filepath.Join(f.dir, name), gone), syncDir(f.dir)); err != nil {
			return removed, fmt.Errorf("removing an old backup: %w", err)
		}
		if err := os.RemoveAll(gone); err != nil {
			return removed, fmt.Errorf("removing an old backup: %w", err)
		}
		removed = append(removed, name)
	}
	return removed, nil
}

// List returns the names of the complete backups in a folder, oldest first.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for backups: %w", err)
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

// Newest returns when the newest backup in a folder began; the zero time when
// there is none.
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

// Locate finds the backup that somebody means: the folder of one, or a folder of
// several, whose newest it is.
func Locate(path string) (string, error) {
	if strings.HasPrefix(filepath.Base(path), incompletePrefix) {
		return "", errs.Newf(errs.Invalid, "%s is not a complete backup: whoever wrote it did not finish", path)
	}
	if _, err := os.Stat(filepath.Join(path, ManifestFile)); err == nil {
		return path, nil
	}
	names, err := List(path)
	if err != nil {
		return "", errs.Newf(errs.NotFound, "%w", err)
	}
	if len(names) == 0 {
		return "", errs.Newf(errs.NotFound, "%s is not a complete backup, and there is none in it", path)
	}
	return filepath.Join(path, names[len(names)-1]), nil
}
