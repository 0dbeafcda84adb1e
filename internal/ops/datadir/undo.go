package datadir

import (
	"errors"
	"os"
	"path/filepath"
)

// Start records what a data directory has before a server starts, so that a start that fails can remove
// what it created.
type Start struct {
	dir     string
	locked  bool            // whether the lock's file exists
	missing []string        // the directory and its parents that do not exist, innermost first
	had     map[string]bool // names in the directory when it was locked; nil before
}

// NewStart records which directories exist. Call it before anything is created.
func NewStart(dir string) *Start {
	_, err := os.Lstat(filepath.Join(dir, lockFile))
	s := &Start{dir: dir, locked: err == nil}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, os.ErrNotExist) || at == filepath.Dir(at) {
			return s
		}
		s.missing = append(s.missing, at)
	}
}

// Locked records the files in the directory. Call it with the directory's lock held, before any other file
// is created.
func (s *Start) Locked() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	s.had = map[string]bool{}
	for _, entry := range entries {
		s.had[entry.Name()] = true
	}
	return nil
}

// Undo removes what was created since Locked, and the directories that did not exist. Call it with the
// directory's lock held, so that no other process uses the files. It removes the lock's file last.
func (s *Start) Undo() error {
	if s.had == nil {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var problems []error
	for _, entry := range entries {
		if name := entry.Name(); !s.had[name] && name != lockFile {
			problems = append(problems, os.RemoveAll(filepath.Join(s.dir, name)))
		}
	}
	if !s.locked {
		problems = append(problems, os.Remove(filepath.Join(s.dir, lockFile)))
	}
	for _, created := range s.missing {
		if os.Remove(created) != nil {
			break // another process has created a file in it
		}
	}
	return errors.Join(problems...)
}
