package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// A store with an external log is one of several copies. When one of its files is damaged, the
// whole store can be replaced, so nothing is skipped as in the store of a single server: the engine
// stops, its callers retry at another member, and the member fetches another copy.
//
// Damage means that Pebble, or the file system, cannot return what was written. A record with a
// wrong checksum of its own in an intact block is not damage of the file: all copies have it.

// FileDamage is the damage of a file of a store.
type FileDamage struct {
	File string // name of the file; "" when it is not known
	Err  error
}

// Error names the file and its damage.
func (d *FileDamage) Error() string {
	text := strings.ReplaceAll(d.Err.Error(), engine.ErrCorrupt.Error()+": ", "")
	if d.File == "" {
		return text
	}
	return d.File + ": " + text
}

// Unwrap returns the damage and engine.ErrCorrupt.
func (d *FileDamage) Unwrap() []error { return []error{engine.ErrCorrupt, d.Err} }

// copyState is what is known about the files of a store with an external log.
type copyState struct {
	found    atomic.Pointer[FileDamage] // the first damage
	damaged  chan struct{}              // closed when found is set
	verified atomic.Bool                // the tables were verified, or nothing can have changed them
}

// unproven reports whether the store may have damaged files. Such a store leaves no record of a clean
// close, so that the next start verifies it.
func (s *store) unproven() bool {
	return s.logged && (!s.copy.verified.Load() || s.copy.found.Load() != nil)
}

// fileDamaged reports whether an error means that a file cannot be read as it was written.
func fileDamaged(err error) bool {
	return err != nil && (cdb.IsCorruptionError(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EIO))
}

// damagedAtOpen reports whether an error of opening a store means that its files are damaged: any error
// that does not come from the environment, such as missing permission, a lock or too many open files.
func damagedAtOpen(err error) bool {
	var number syscall.Errno
	switch {
	case err == nil || errors.Is(err, engine.ErrNewerFormat):
		return false
	case errors.Is(err, engine.ErrCorrupt) || fileDamaged(err):
		return true
	case errors.As(err, &number):
		return number == syscall.ENOENT || number == syscall.EISDIR || number == syscall.ENOTDIR
	}
	return true
}

// spoil records damage of a file of a store with an external log, and stops its engine: callers
// retry at the member that takes over.
func (s *store) spoil(file string, err error) {
	if !s.logged || !s.copy.found.CompareAndSwap(nil, &FileDamage{File: file, Err: err}) {
		return
	}
	close(s.copy.damaged)
	if e := s.served.Load(); e != nil {
		e.stop(engine.ErrNotOwner)
	}
}

// leaveDamaged returns engine.ErrNotOwner if err is damage of a file of a store with an external
// log, which it records, and nil otherwise.
func (s *store) leaveDamaged(err error) error {
	if !s.logged || !fileDamaged(err) {
		return nil
	}
	file := ""
	if info := cdb.ExtractDataCorruptionInfo(err); info != nil {
		file = filepath.Base(info.Path)
	}
	s.spoil(file, err)
	return fmt.Errorf("%w: copy of this member is damaged: %w", engine.ErrNotOwner, s.copy.found.Load())
}

// spoilMissing records damage if a table of the store does not exist, which is why the caller got err. It
// returns err.
func (s *store) spoilMissing(err error) error {
	if !s.logged || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tables, listErr := s.listTables()
	if listErr != nil {
		return err
	}
	for _, t := range tables {
		if _, missing := s.fs.Stat(s.fs.PathJoin(s.dir, t.Name)); errors.Is(missing, fs.ErrNotExist) && s.has(t) {
			s.spoil(t.Name, missing)
		}
	}
	return err
}

// Damaged returns a channel that is closed when damage of a file of the store was found.
func (st *Store) Damaged() <-chan struct{} { return st.s.copy.damaged }

// Damage returns the first damage that was found in the store since it was opened, or nil.
func (st *Store) Damage() *FileDamage { return st.s.copy.found.Load() }

// ReportDamage records damage that the caller has found in a copy of the store's files.
func (st *Store) ReportDamage(d *FileDamage) { st.s.spoil(d.File, d.Err) }

// condemnedName is the name of a file in a store whose content is wrong although its files are intact. It
// contains the reason.
const condemnedName = "CONDEMNED"

// Condemn records that the content of the store is wrong, although its files are intact. The store is not
// opened again, not even after a crash, because nothing would find the damage then.
func (st *Store) Condemn(reason error) {
	s := st.s
	if err := (folder{s.fs, s.dir}).Write(condemnedName, []byte(reason.Error())); err != nil {
		s.log.Warn("wrong content of a store could not be recorded; after a crash the store would be used again",
			slog.String("dir", s.dir), slog.Any("error", err))
	}
	s.spoil("", reason)
}

// condemned returns the reason for which a store was condemned, or nil.
func condemned(files vfs.FS, dir string, names []string) error {
	if !slices.Contains(names, condemnedName) {
		return nil
	}
	reason := "reason cannot be read"
	if file, err := files.Open(files.PathJoin(dir, condemnedName)); err == nil {
		if text, err := io.ReadAll(file); err == nil && len(text) > 0 {
			reason = string(text)
		}
		_ = file.Close() // opened for reading only
	}
	return fmt.Errorf("%w: %s", engine.ErrCorrupt, reason)
}

// Verified reports whether the tables of the store are known to be intact: they were verified, or
// have not changed since the store was closed properly.
func (st *Store) Verified() bool { return st.s.copy.verified.Load() }

// SetVerified records that the tables of the store were verified.
func (st *Store) SetVerified() { st.s.copy.verified.Store(true) }
