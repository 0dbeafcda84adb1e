package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"freshet/internal/base/atomicfile"
)

// rotatedFile is a file of lines that is renamed to path.1, path.2, ... when it has reached
// its size limit. One goroutine writes; readers open the files with openAll.
type rotatedFile struct {
	path       string
	maxBytes   int64
	maxRotated int
	warn       func(error) // called with failures that lose no record

	mu             sync.Mutex // held while files are renamed, reopened, or opened for reading
	file           *os.File
	size           int64
	pending        bytes.Buffer
	encoder        *json.Encoder
	incompleteLine bool // the file may end in an incomplete line
}

func openRotated(path string, maxBytes int64, keep int, warn func(error)) (*rotatedFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	r := &rotatedFile{path: path, maxBytes: maxBytes, maxRotated: keep, warn: warn}
	r.encoder = json.NewEncoder(&r.pending)
	r.encoder.SetEscapeHTML(false)
	return r, r.open()
}

func (r *rotatedFile) open() error {
	file, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	r.file, r.size, r.incompleteLine = file, info.Size(), false
	if r.size > 0 {
		last := make([]byte, 1)
		if _, err := file.ReadAt(last, r.size-1); err != nil {
			return errors.Join(err, file.Close())
		}
		r.incompleteLine = last[0] != '\n'
	}
	return nil
}

// append adds a record to the next write.
func (r *rotatedFile) append(rec Record) {
	if err := r.encoder.Encode(rec); err != nil {
		panic("audit: encoding a record: " + err.Error()) // a Record has only strings, numbers and a time
	}
}

// write writes the appended records to the file. It rotates the file first if it is
// full. It clears the appended records even if it fails.
func (r *rotatedFile) write() error {
	defer r.pending.Reset()
	if r.file == nil {
		if err := r.open(); err != nil {
			return err
		}
	}
	if r.size > 0 && r.size+int64(r.pending.Len()) > r.maxBytes {
		if err := r.rotate(); err != nil {
			r.warn(fmt.Errorf("rotating the audit log: %w", err)) // a file above its limit is better than a lost record
		}
		if r.file == nil {
			return errors.New("audit log has no open file after a failed rotation")
		}
	}
	if r.incompleteLine {
		// Ends the incomplete line of an earlier failure, so that it damages no other line.
		if _, err := r.file.Write([]byte{'\n'}); err != nil {
			return err
		}
		r.incompleteLine = false
		r.size++
	}
	n, err := r.file.Write(r.pending.Bytes())
	r.size += int64(n)
	r.incompleteLine = err != nil && n > 0
	return err
}

func (r *rotatedFile) rotate() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.file.Sync(); err != nil {
		return err
	}
	for i := r.maxRotated - 1; i >= 0; i-- {
		if err := os.Rename(r.name(i), r.name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	old := r.file
	r.file = nil
	return errors.Join(r.open(), old.Close(), atomicfile.SyncDir(filepath.Dir(r.path)))
}

// reopen opens the file again after it was renamed. If that fails, the old file stays in
// use.
func (r *rotatedFile) reopen() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, size, torn := r.file, r.size, r.incompleteLine
	if err := r.open(); err != nil {
		r.file, r.size, r.incompleteLine = old, size, torn
		return err
	}
	if old == nil {
		return nil
	}
	return errors.Join(old.Sync(), old.Close())
}

// name returns path for 0, path.1 for 1, and so on.
func (r *rotatedFile) name(i int) string {
	if i == 0 {
		return r.path
	}
	return fmt.Sprintf("%s.%d", r.path, i)
}

func (r *rotatedFile) sync() error {
	if r.file == nil {
		return nil
	}
	return r.file.Sync()
}

func (r *rotatedFile) close() error {
	if r.file == nil {
		return nil
	}
	return errors.Join(r.file.Sync(), r.file.Close())
}

// openAll opens the files for reading, the newest first. Open files stay readable when a
// rotation renames them.
func (r *rotatedFile) openAll() ([]*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var files []*os.File
	for i := range r.maxRotated + 1 {
		file, err := os.Open(r.name(i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // read only
	}
}
