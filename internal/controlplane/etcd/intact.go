package etcd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"freshet/internal/base/cleanclose"
)

// ErrDamaged reports that the member cannot start from its files.
var ErrDamaged = errors.New("resource store (etcd) is damaged")

// Damage is the error about damaged files of a member. It wraps ErrDamaged and its cause.
type Damage struct {
	// Cause names the file, relative to the directory, and the problem.
	Cause error
	// InFiles is set when the files show the damage: Intact finds it again. Other damage was found by running the
	// member, or by comparing its content with that of other members.
	InFiles     bool
	dir, advice string
}

// Error returns the cause and what the operator should do.
func (d *Damage) Error() string {
	return fmt.Sprintf("%v: %v in %s; %s", ErrDamaged, d.Cause, d.dir, d.advice)
}

// Unwrap returns ErrDamaged and the cause.
func (d *Damage) Unwrap() []error { return []error{ErrDamaged, d.Cause} }

// damagedError returns the error about damaged files, with what the operator should do.
func (o *Options) damagedError(dir string, cause error) *Damage {
	advice := cmp.Or(o.Advice, "keep a copy of it, then restore the data directory from a backup; freshet check lists "+
		"the damaged files")
	return &Damage{Cause: cause, dir: dir, advice: advice}
}

// Intact returns nil when the files of a stopped member are intact, as far as can be determined
// without starting it. After an orderly stop they must match the close record. Every record of the log,
// the snapshot that the log refers to and every page of the tree are checked; values in the tree have no
// checksum (compare.go compares them). Errors name the file relative to dir.
func Intact(dir string) error {
	if _, err := cleanclose.Verify(cleanclose.Dir(dir)); err != nil {
		return fmt.Errorf("%w; if they were replaced on purpose, remove %s", err, filepath.Join(dir, cleanclose.Name))
	}
	return Check(dir) // the record of an orderly stop has the damage that a file had before
}

// Check reads the log, the last snapshot and the tree of a stopped member.
func Check(dir string) error {
	member := filepath.Join(dir, "member")
	if _, err := os.Stat(member); errors.Is(err, os.ErrNotExist) {
		return nil // a new member
	}
	log := filepath.Join(member, "wal")
	used, err := checkTree(filepath.Join(member, "snap", "db"))
	switch {
	case err != nil && (wal.Exist(log) || !errors.Is(err, os.ErrNotExist)):
		return fmt.Errorf("member/snap/db: %w", err)
	case used && !wal.Exist(log):
		if asLeft, err := cleanclose.Verify(cleanclose.Dir(dir)); err == nil && asLeft {
			return nil // as Restore leaves it
		}
		return errors.New("member/wal: the log is missing")
	case !wal.Exist(log):
		return nil // the first start of the member was interrupted
	}
	return checkLog(dir)
}

// recordClose records the files of the stopped member, for Intact.
func recordClose(dir string) error {
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".tmp") {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && name != cleanclose.Name {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return cleanclose.Write(cleanclose.Dir(dir), names)
}
