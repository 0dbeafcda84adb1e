package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"freshet/internal/base/errs"
)

// RestoreOptions configure a restore.
type RestoreOptions struct {
	From    string    // the backup: a directory, a file, or - for Stdin
	Stdin   io.Reader // read if From is -
	DataDir string    // the data directory to create
	// EncryptionKey is the file of the encryption keys, for backups without them.
	EncryptionKey string
	Progress      func(Progress)
	// Steps is notified, from one goroutine, of the steps after the files were copied; nil:
	// no notifications.
	Steps Steps
}

// Steps is notified of the progress of work with several steps.
type Steps interface {
	// Step is called at the start of a step.
	Step(text string)
	// Progress is called with the bytes of the step that are done.
	Progress(done, total int64)
}

// isFolder reports whether a backup is in a directory; otherwise it is a tar stream.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return path != "-" && (err != nil || info.IsDir())
}

// Verify reads a whole backup and compares every file with the manifest. path is the
// directory of a backup, a directory of several backups (the newest is verified), a file
// with a tar stream, or - for a tar stream on stdin.
func Verify(ctx context.Context, path string, stdin io.Reader, progress func(Progress)) (*Manifest, error) {
	if !isFolder(path) {
		in, err := openTar(path, stdin)
		if err != nil {
			return nil, err
		}
		defer func() { _ = in.Close() }() // read only
		return readTar(ctx, in, progress,
			func(_ string, r io.Reader) (string, int64, error) { return copySummed(ctx, io.Discard, r) })
	}
	dir, err := Locate(path)
	if err != nil {
		return nil, err
	}
	m, err := Read(dir)
	if err != nil {
		return nil, err
	}
	var problems []string
	t := newTracker(m, progress)
	for _, f := range m.Files {
		sum, size, err := sumFile(ctx, filepath.Join(dir, filepath.FromSlash(f.Path)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading %s of the backup: %w", f.Path, err)
		}
		problems = append(problems, difference(f, sum, size, err == nil)...)
		t.add(f.Size, false)
	}
	there, err := walk(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the backup: %w", err)
	}
	for _, f := range there {
		if m.find(f.Path) == nil {
			problems = append(problems, f.Path+" is not in the manifest")
		}
	}
	return m, damagedError(problems)
}

// Extract copies the files of a backup to a directory and compares each with the
// manifest. If it fails, the contents of the directory are unusable.
func Extract(ctx context.Context, path string, stdin io.Reader, to string, progress func(Progress)) (*Manifest, error) {
	if !isFolder(path) {
		in, err := openTar(path, stdin)
		if err != nil {
			return nil, err
		}
		defer func() { _ = in.Close() }() // read only
		m, err := readTar(ctx, in, progress, func(name string, r io.Reader) (string, int64, error) {
			return createFile(ctx, filepath.Join(to, filepath.FromSlash(name)), r)
		})
		return m, err
	}
	dir, err := Locate(path)
	if err != nil {
		return nil, err
	}
	m, err := Read(dir)
	if err != nil {
		return nil, err
	}
	t := newTracker(m, progress)
	for _, f := range m.Files {
		sum, size, err := copyFile(ctx, filepath.Join(dir, filepath.FromSlash(f.Path)),
			filepath.Join(to, filepath.FromSlash(f.Path)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errs.Newf(errs.Invalid, "backup is damaged; use another one: %w", err)
		}
		if err != nil {
			return nil, fmt.Errorf("restoring %s: %w", f.Path, err)
		}
		if err := damagedError(difference(f, sum, size, true)); err != nil {
			return nil, err
		}
		t.add(f.Size, false)
	}
	return m, nil
}
