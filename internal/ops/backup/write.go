package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
)

// Options configure writing a backup.
type Options struct {
	// WithoutKeys excludes files that grant access to the server (IsKey). A restore then
	// needs the encryption keys from another source.
	WithoutKeys bool
	// Progress is called with the progress; nil: no calls.
	Progress func(Progress)
}

// Progress is the progress of writing, verifying or restoring a backup. AllFiles and AllBytes are 0
// while a tar stream is read, because its manifest is its last file.
type Progress struct {
	Files, AllFiles int
	Bytes, AllBytes int64
	// Linked is the part of Bytes that needed no disk space, because the file is a hard
	// link.
	Linked int64
}

// newManifest returns the manifest of a new backup, with the files to copy.
func newManifest(staged string, opts Options) (*Manifest, error) {
	m, err := Read(staged)
	if err != nil {
		return nil, err
	}
	m.HasKeys = !opts.WithoutKeys
	all, err := walk(staged)
	if err != nil {
		return nil, fmt.Errorf("reading the staged copy: %w", err)
	}
	for _, f := range all {
		if m.HasKeys || !IsKey(f.Path) {
			m.Files = append(m.Files, f)
		}
	}
	return m, nil
}

// tracker counts progress.
type tracker struct {
	Progress
	report func(Progress)
}

func newTracker(m *Manifest, report func(Progress)) *tracker {
	if report == nil {
		report = func(Progress) {}
	}
	return &tracker{Progress{AllFiles: len(m.Files), AllBytes: m.Size()}, report}
}

func (t *tracker) add(size int64, linked bool) {
	t.Files++
	t.Bytes += size
	if linked {
		t.Linked += size
	}
	t.report(t.Progress)
}

// end reports the end of a stream whose totals were not known before.
func (t *tracker) end(m *Manifest) {
	t.AllFiles, t.AllBytes = len(m.Files), m.Size()
	t.report(t.Progress)
}

// Write writes a backup of a staged copy and returns its path. Files that are equal in
// the newest backup are hard-linked to it. Tables are hard-linked to the staged copy if
// both are on one file system. The backup gets its final name only when it is complete,
// synced and verified.
func (f *Folder) Write(ctx context.Context, staged string, opts Options) (string, error) {
	m, err := newManifest(staged, opts)
	if err != nil {
		return "", err
	}
	name := m.Created.UTC().Format(nameFormat)
	w := &writer{from: staged, to: filepath.Join(f.dir, incompletePrefix+name), tracker: newTracker(m, opts.Progress)}
	target := filepath.Join(f.dir, name)
	if _, err := os.Lstat(target); err == nil {
		return "", errs.Newf(errs.Conflict, "backup %s already exists", target)
	}
	if err := w.findPrevious(f.dir); err != nil {
		return "", err
	}
	if err := os.Mkdir(w.to, dirMode); err != nil {
		return "", fmt.Errorf("writing the backup: %w", err)
	}
	for i := range m.Files {
		if err := w.file(ctx, &m.Files[i]); err != nil {
			return "", errors.Join(fmt.Errorf("writing %s of the backup: %w", m.Files[i].Path, err), os.RemoveAll(w.to))
		}
	}
	err = errors.Join(m.WriteTo(w.to), atomicfile.SyncDirs(w.to))
	if err == nil {
		err = atomicfile.Rename(w.to, target)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("writing the backup: %w", err), os.RemoveAll(w.to))
	}
	return target, nil
}

// writer writes one backup.
type writer struct {
	from, to         string
	previous         string    // the previous backup; "" if there is none
	previousManifest *Manifest // the manifest of the previous backup
	canLinkStaged    bool
	tracker          *tracker
}

// findPrevious finds the previous backup to link to. It skips backups whose manifest cannot
// be read.
func (w *writer) findPrevious(dir string) error {
	w.canLinkStaged = true
	names, err := List(dir)
	if err != nil {
		return err
	}
	for i := len(names) - 1; i >= 0 && w.previousManifest == nil; i-- {
		w.previous = filepath.Join(dir, names[i])
		w.previousManifest, _ = Read(w.previous) // an older backup serves as well
	}
	return nil
}

func (w *writer) file(ctx context.Context, f *File) (err error) {
	from, to := filepath.Join(w.from, filepath.FromSlash(f.Path)), filepath.Join(w.to, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(to), dirMode); err != nil {
		return err
	}
	if immutable(f.Path) {
		if linked, err := w.linkTable(ctx, f, from, to); linked || err != nil {
			return err
		}
	}
	if f.SHA256, f.Size, err = copyFile(ctx, from, to); err != nil {
		return err
	}
	linked := w.linkEqual(ctx, f, to)
	// The file is read back, to detect a faulty disk now and not at a restore.
	if sum, _, err := sumFile(ctx, to); err != nil || sum != f.SHA256 {
		return errors.Join(errors.New("file differs after reading it back; check the disk"), err)
	}
	w.tracker.add(f.Size, linked)
	return nil
}

// linkTable links a table to the previous backup, if that has the same file, or to the staged
// copy. It returns false if neither can be linked.
func (w *writer) linkTable(ctx context.Context, f *File, from, to string) (linked bool, err error) {
	if same := w.sameInPrevious(f); same != nil {
		if info, err := os.Stat(filepath.Join(w.previous, filepath.FromSlash(f.Path))); err == nil &&
			info.Size() == f.Size &&
			os.Link(filepath.Join(w.previous, filepath.FromSlash(f.Path)), to) == nil {
			f.SHA256 = same.SHA256
			w.tracker.add(f.Size, true)
			return true, nil
		}
	}
	if w.canLinkStaged = w.canLinkStaged && os.Link(from, to) == nil; !w.canLinkStaged {
		return false, nil // another file system, or one without hard links
	}
	if f.SHA256, f.Size, err = sumFile(ctx, to); err != nil {
		return false, err
	}
	w.tracker.add(f.Size, true)
	return true, nil
}

// sameInPrevious returns the same table in the previous backup; nil if there is none. A table
// never changes, so size and modification time identify it.
func (w *writer) sameInPrevious(f *File) *File {
	if w.previousManifest == nil {
		return nil
	}
	if old := w.previousManifest.find(f.Path); old != nil && old.Size == f.Size && old.Modified == f.Modified {
		return old
	}
	return nil
}

// linkEqual replaces a copy with a link to the previous backup, if that has an equal
// file.
func (w *writer) linkEqual(ctx context.Context, f *File, to string) bool {
	if w.previousManifest == nil {
		return false
	}
	old := w.previousManifest.find(f.Path)
	if old == nil || old.SHA256 != f.SHA256 {
		return false
	}
	previous, temp := filepath.Join(w.previous, filepath.FromSlash(f.Path)), to+".link"
	if sum, _, err := sumFile(ctx, previous); err != nil || sum != f.SHA256 || os.Link(previous, temp) != nil {
		return false
	}
	if os.Rename(temp, to) != nil {
		_ = os.Remove(temp) // the copy stays
		return false
	}
	return true
}
