package pebble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/base/cleanclose"
	"freshet/internal/storage/engine"
)

// Table is a table of a store.
type Table struct {
	Name string
	Size int64 // as the manifest has it; 0 when several parts of it are tables of their own
}

// Tables returns the tables of the store, the newest first.
func (st *Store) Tables() ([]Table, error) { return st.s.listTables() }

func (s *store) listTables() ([]Table, error) {
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, storeError(err)
	}
	found := make(map[cdb.TableNum]Table)
	for _, level := range levels {
		for i := range level {
			info := &level[i]
			t := Table{Name: fmt.Sprintf("%06d.sst", uint64(info.BackingSSTNum)), Size: int64(info.Size)}
			if info.Virtual {
				t.Size = 0
			}
			found[cdb.TableNum(info.BackingSSTNum)] = t
		}
	}
	tables := make([]Table, 0, len(found))
	for _, t := range found {
		tables = append(tables, t)
	}
	// longer numbers are larger
	slices.SortFunc(tables, func(a, b Table) int {
		return cmp.Or(cmp.Compare(len(b.Name), len(a.Name)), cmp.Compare(b.Name, a.Name))
	})
	return tables, nil
}

// VerifyTable verifies the size of a table and the checksums that its blocks got when they were written.
// Damage is recorded (Damaged). A table that no longer belongs to the store is not an error.
func (st *Store) VerifyTable(ctx context.Context, t Table) error {
	s := st.s
	err := verifyTable(ctx, s.fs, s.dir, t)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if !s.has(t) {
		return nil // a compaction has replaced it
	}
	if !damagedAtOpen(err) {
		return err
	}
	s.spoil(t.Name, err)
	return &FileDamage{File: t.Name, Err: err}
}

// has reports whether a table still belongs to the store.
func (s *store) has(t Table) bool {
	tables, err := s.listTables()
	return err != nil || slices.ContainsFunc(tables, func(now Table) bool { return now.Name == t.Name })
}

// verifyTable verifies a table against its size in the manifest and the checksums in it.
func verifyTable(ctx context.Context, files vfs.FS, dir string, t Table) error {
	path := files.PathJoin(dir, t.Name)
	info, err := files.Stat(path)
	if err != nil {
		return err
	}
	if t.Size != 0 && info.Size() != t.Size {
		return fmt.Errorf("%w: table has %d bytes and had %d when it was written", engine.ErrCorrupt, info.Size(),
			t.Size)
	}
	return checkTable(ctx, files, path)
}

// verifyAttempts is how often the metadata is read again, because Pebble may replace it meanwhile.
const verifyAttempts = 3

// VerifyMetadata verifies that the files exist without which the store cannot be opened again, and that
// the manifest is intact. Damage is recorded (Damaged).
func (st *Store) VerifyMetadata() error {
	s := st.s
	var damage *FileDamage
	for range verifyAttempts {
		err := verifyMetadata(s.fs, s.dir)
		if !errors.As(err, &damage) {
			return err
		}
	}
	s.spoil(damage.File, damage.Err)
	return damage
}

// verifyMetadata verifies the markers, the manifest and the options of a store.
func verifyMetadata(files vfs.FS, dir string) error {
	names, err := files.List(dir)
	if err != nil {
		return &FileDamage{Err: err}
	}
	for _, kind := range []string{"marker.format-version.", "marker.manifest.", "OPTIONS-"} {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, kind) }) {
			return &FileDamage{File: kind + "*", Err: errors.New("file is missing")}
		}
	}
	desc, err := cdb.Peek(dir, files)
	if err != nil {
		return &FileDamage{Err: err}
	}
	err = scanLog(files, desc.ManifestFilename)
	if err != nil && damagedAtOpen(err) {
		return &FileDamage{File: files.PathBase(desc.ManifestFilename), Err: err}
	}
	return err
}

// VerifyCheckpoint is Disk.VerifyClosed for a checkpoint of this store, which is on the same file system.
func (st *Store) VerifyCheckpoint(ctx context.Context, dir string) (position []byte, err error) {
	return verifyClosed(ctx, st.s.fs, dir)
}

func verifyClosed(ctx context.Context, files vfs.FS, dir string) (position []byte, err error) {
	if _, err := checkIntact(files, dir, true); err != nil {
		return nil, asDamage("", err)
	}
	if err := verifyMetadata(files, dir); err != nil {
		return nil, err
	}
	s, err := openReadOnly(files, dir)
	if err != nil {
		return nil, asDamage("", err)
	}
	defer func() { err = errors.Join(err, s.db.Close()) }()
	tables, err := s.listTables()
	if err != nil {
		return nil, asDamage("", err)
	}
	for _, t := range tables {
		if err := verifyTable(ctx, files, dir, t); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, asDamage(t.Name, err)
		}
	}
	position, err = s.get([]byte{keyLogPosition})
	if errors.Is(err, cdb.ErrNotFound) {
		return nil, nil
	}
	return position, asDamage("", err)
}

// asDamage returns an error of reading a file as *FileDamage, if it is damage.
func asDamage(file string, err error) error {
	var known *FileDamage
	if err == nil || errors.As(err, &known) || !damagedAtOpen(err) {
		return err
	}
	return &FileDamage{File: file, Err: err}
}

// unchangedSinceClose reports whether no table was written after the record of a clean close. The record
// contains the other files.
func unchangedSinceClose(files vfs.FS, dir string, names []string) (bool, error) {
	closed, err := files.Stat(files.PathJoin(dir, cleanclose.Name))
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		info, err := files.Stat(files.PathJoin(dir, name))
		if err != nil {
			return false, err
		}
		if !info.ModTime().Before(closed.ModTime()) {
			return false, nil
		}
	}
	return true, nil
}
