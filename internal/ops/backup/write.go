package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"freshet/internal/base/errs"
)

// Options of writing a backup.
type Options struct {
	// WithoutKeys leaves out what gives access by itself (IsKey). Restoring then
	// needs the encryption keys from elsewhere.
	WithoutKeys bool
	// Progress is told what was done of what there is to do; nil for nobody.
	Progress func(Progress)
}

// Progress of writing, checking or restoring a backup.
type Progress struct {
	Files, AllFiles int
	Bytes, AllBytes int64
	// Linked is what of Bytes took no room, because the file was there.
	Linked int64
}

// begin reads what there is to copy.
func begin(staged string, opts Options) (*Manifest, error) {
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
	tell func(Progress)
}

func track(m *Manifest, tell func(Progress)) *tracker {
	if tell == nil {
		tell = func(Progress) {}
	}
	return &tracker{Progress{AllFiles: len(m.Files), AllBytes: m.Size()}, tell}
}

func (t *tracker) add(size int64, linked bool) {
	t.Files++
	t.Bytes += size
	if linked {
		t.Linked += size
	}
	t.tell(t.Progress)
}

// Write makes a backup of a staged copy and returns its path. Files that the
// newest backup has too are linked to it, and tables to the staged copy where both
// are on one file system. The backup has its name only when it is complete, on
// disk and checked.
func (f *Folder) Write(ctx context.Context, staged string, opts Options) (string, error) {
	m, err := begin(staged, opts)
	if err != nil {
		return "", err
	}
	name := m.Created.UTC().Format(nameFormat)
	w := &writer{from: staged, to: filepath.Join(f.dir, incompletePrefix+name), track: track(m, opts.Progress)}
	target := filepath.Join(f.dir, name)
	if _, err := os.Lstat(target); err == nil {
		return "", errs.Newf(errs.Conflict, "%s is there already", target)
	}
	if err := w.findBefore(f.dir); err != nil {
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
	err = errors.Join(m.WriteTo(w.to), syncDirs(w.to))
	if err == nil {
		err = errors.Join(os.Rename(w.to, target), syncDir(f.dir))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("writing the backup: %w", err), os.RemoveAll(w.to))
	}
	return target, nil
}

// writer writes one backup.
type writer struct {
	from, to  string
	before    string    // the backup before this one; "" when there is none
	had       *Manifest // what that one has
	linkStage bool
	track     *tracker
}

// findBefore looks for a backup to link to. One that cannot be read is not used.
func (w *writer) findBefore(dir string) error {
	w.linkStage = true
	names, err := List(dir)
	if err != nil {
		return err
	}
	for i := len(names) - 1; i >= 0 && w.had == nil; i-- {
		w.before = filepath.Join(dir, names[i])
		w.had, _ = Read(w.before) // the next is as good
	}
	return nil
}

func (w *writer) file(ctx context.Context, f *File) (err error) {
	from, to := filepath.Join(w.from, filepath.FromSlash(f.Path)), filepath.Join(w.to, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(to), dirMode); err != nil {
		return err
	}
	if immutable(f.Path) {
		if linked, err := w.link(ctx, f, from, to); linked || err != nil {
			return err
		}
	}
	if f.SHA256, f.Size, err = copyFile(ctx, from, to); err != nil {
		return err
	}
	linked := w.linkEqual(ctx, f, to)
	// What was written is read again: a disk that does not keep it is found out now.
	if sum, _, err := sumFile(ctx, to); err != nil || sum != f.SHA256 {
		return errors.Join(errors.New("what was read back is not what was written; check the disk"), err)
	}
	w.track.add(f.Size, linked)
	return nil
}

// link takes a table from the backup before, when it is the same, or from the
// staged copy. It reports false when neither can be linked.
func (w *writer) link(ctx context.Context, f *File, from, to string) (linked bool, err error) {
	if same := w.sameBefore(f); same != nil {
		if info, err := os.Stat(filepath.Join(w.before, filepath.FromSlash(f.Path))); err == nil &&
			info.Size() == f.Size &&
			os.Link(filepath.Join(w.before, filepath.FromSlash(f.Path)), to) == nil {
			f.SHA256 = same.SHA256
			w.track.add(f.Size, true)
			return true, nil
		}
	}
	if w.linkStage = w.linkStage && os.Link(from, to) == nil; !w.linkStage {
		return false, nil // another file system, or one that has no links
	}
	if f.SHA256, f.Size, err = sumFile(ctx, to); err != nil {
		return false, err
	}
	w.track.add(f.Size, true)
	return true, nil
}

// sameBefore is the file of the backup before that this one is a copy of: a table
// never changes, and its time is that of the store's file.
func (w *writer) sameBefore(f *File) *File {
	if w.had == nil {
		return nil
	}
	if old := w.had.find(f.Path); old != nil && old.Size == f.Size && old.Modified == f.Modified {
		return old
	}
	return nil
}

// linkEqual replaces a copy by a link to the backup before, when that has the same.
func (w *writer) linkEqual(ctx context.Context, f *File, to string) bool {
	if w.had == nil {
		return false
	}
	old := w.had.find(f.Path)
	if old == nil || old.SHA256 != f.SHA256 {
		return false
	}
	kept, temp := filepath.Join(w.before, filepath.FromSlash(f.Path)), to+".link"
	if sum, _, err := sumFile(ctx, kept); err != nil || sum != f.SHA256 || os.Link(kept, temp) != nil {
		return false
	}
	if os.Rename(temp, to) != nil {
		_ = os.Remove(temp) // the copy stays
		return false
	}
	return true
}
