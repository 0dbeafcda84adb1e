package integrity

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"freshet/internal/base/atomicfile"
)

// Quarantined describes damaged files that the member keeps for a while, so that a person can look
// at them.
type Quarantined struct {
	Part    string    `json:"part"`
	Problem string    `json:"problem"`
	From    string    `json:"from"` // the path that the files had
	At      time.Time `json:"at"`
	Dir     string    `json:"-"` // where they are now
	Bytes   int64     `json:"-"`
}

const (
	entryFile = "entry.json"
	filesName = "files"
)

// Quarantine moves a file or directory of a damaged part into quarantine, and expires older ones. The
// path must be on the same file system as the register. A path that does not exist is no error.
func (r *Register) Quarantine(part, path string, cause error) error {
	if r == nil {
		return nil
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r.Expire()
	entry := Quarantined{Part: part, Problem: cause.Error(), From: path, At: r.now()}
	text, err := json.MarshalIndent(entry, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Join(r.dir, quarantineDir, entry.At.UTC().Format("20060102T150405Z")+"-"+rand.Text()[:8])
	err = os.Mkdir(dir, dirPermission)
	if err == nil {
		err = atomicfile.WriteNewBytes(filepath.Join(dir, entryFile), text)
	}
	if err == nil {
		err = atomicfile.Rename(path, filepath.Join(dir, filesName))
	}
	if err != nil {
		return fmt.Errorf("moving %s into quarantine: %w", path, err)
	}
	return atomicfile.SyncDir(filepath.Join(r.dir, quarantineDir))
}

// Quarantined returns what is in quarantine, the oldest first.
func (r *Register) Quarantined() []Quarantined {
	if r == nil {
		return nil
	}
	dirs, err := filepath.Glob(filepath.Join(r.dir, quarantineDir, "*"))
	if err != nil {
		return nil
	}
	var found []Quarantined
	for _, dir := range dirs { // sorted by time
		entry := Quarantined{Dir: dir}
		text, err := os.ReadFile(filepath.Join(dir, entryFile))
		if err == nil {
			err = json.Unmarshal(text, &entry)
		}
		if info, statErr := os.Stat(dir); err != nil && statErr == nil {
			entry.At = info.ModTime() // a crash left it without a description
		}
		entry.Bytes = size(dir)
		found = append(found, entry)
	}
	return found
}

// Expire removes what has been in quarantine for long enough.
func (r *Register) Expire() {
	for _, entry := range r.Quarantined() {
		if r.now().Sub(entry.At) < r.keep {
			continue
		}
		if err := os.RemoveAll(entry.Dir); err != nil {
			r.log.Warn("removing files from quarantine failed", slog.String("dir", entry.Dir), slog.Any("error", err))
		}
	}
}

// size returns the bytes of the files in a directory. Files that disappear meanwhile do not count.
func size(dir string) int64 {
	var bytes int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // the files that can be read count
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}
