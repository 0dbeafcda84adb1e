// Package cleanclose records the files of a store with their checksums when the store is closed
// cleanly, and verifies them before the store is opened again.
//
// A truncated log looks like a log that a crash left incomplete, and a store that accepts it
// loses acknowledged writes. After a clean close no file may have changed, so the record
// distinguishes the two cases. After a crash there is no record, and the store has to detect
// damage itself.
//
// The package does not interpret the files. storage/pebble and controlplane/etcd use it, each
// for its own directory and file system. It has no locks.
package cleanclose

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// Name is the name of the record file, which is in the same directory as the files.
const Name = "CLOSED"

// heading is the first line of a record: its purpose and format version.
const heading = "files of a store that was closed in good order, format 1"

// maxChecksumBytes is the size up to which files are compared by checksum; larger files are compared
// by size only.
const maxChecksumBytes = 1 << 30

// ErrChanged means that a file has changed since the store was closed.
var ErrChanged = errors.New("files are not as they were when the store was closed")

var table = crc32.MakeTable(crc32.Castagnoli)

// FS is a directory. File names are relative to it.
type FS interface {
	Open(name string) (io.ReadCloser, error)
	// Write creates or replaces a file atomically and returns when it is durable.
	Write(name string, data []byte) error
	// Remove removes a file durably.
	Remove(name string) error
}

// Write records the sizes and checksums of the files.
func Write(folder FS, names []string) error {
	slices.Sort(names)
	var out bytes.Buffer
	fmt.Fprintln(&out, heading)
	for _, name := range names {
		size, sum, err := read(folder, name)
		if err != nil {
			return fmt.Errorf("recording the files of a closed store: %w", err)
		}
		fmt.Fprintf(&out, "%d %08x %s\n", size, sum, name)
	}
	fmt.Fprintf(&out, "sum %08x\n", crc32.Checksum(out.Bytes(), table))
	if err := folder.Write(Name, out.Bytes()); err != nil {
		return fmt.Errorf("recording the files of a closed store: %w", err)
	}
	return nil
}

// Verify compares the files with the record and returns the differences as an error. It reports
// whether there is a valid record; a damaged record counts as none.
func Verify(folder FS) (known bool, err error) {
	data, err := readAll(folder, Name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	lines, ok := parse(data)
	if !ok {
		return false, nil
	}
	var problems []error
	for _, l := range lines {
		if err := l.verify(folder); err != nil {
			problems = append(problems, err)
		}
	}
	return true, errors.Join(problems...)
}

// CheckRecord returns an error if there is a record and it is damaged, so that Verify finds less.
func CheckRecord(folder FS) error {
	data, err := readAll(folder, Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, ok := parse(data); !ok {
		return errors.New("record of the files of a store that was closed in good order is damaged")
	}
	return nil
}

// Forget removes the record. It must be called before anything is written to the store.
func Forget(folder FS) error {
	if err := folder.Remove(Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of the last clean close: %w", err)
	}
	return nil
}

// fileRecord is the record of one file.
type fileRecord struct {
	size int64
	sum  uint32
	name string
}

func (l fileRecord) verify(folder FS) error {
	size, sum, err := read(folder, l.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s is missing", ErrChanged, l.name)
	case err != nil:
		return err
	case size != l.size:
		return fmt.Errorf("%w: %s has %d bytes and had %d", ErrChanged, l.name, size, l.size)
	case sum != l.sum:
		return fmt.Errorf("%w: %s has other contents", ErrChanged, l.name)
	}
	return nil
}

// parse decodes a record and reports whether it is valid.
func parse(data []byte) (lines []fileRecord, ok bool) {
	at := bytes.LastIndex(data, []byte("sum "))
	if at < 0 {
		return nil, false
	}
	if string(data[at:]) != fmt.Sprintf("sum %08x\n", crc32.Checksum(data[:at], table)) {
		return nil, false
	}
	text := strings.Split(strings.TrimSuffix(string(data[:at]), "\n"), "\n")
	if text[0] != heading {
		return nil, false
	}
	for _, t := range text[1:] {
		var l fileRecord
		fields := strings.SplitN(t, " ", 3)
		if len(fields) != 3 {
			return nil, false
		}
		if _, err := fmt.Sscanf(fields[0]+" "+fields[1], "%d %x", &l.size, &l.sum); err != nil {
			return nil, false
		}
		l.name = fields[2]
		lines = append(lines, l)
	}
	return lines, true
}

// read returns the size of a file and its checksum, 0 for a file larger than maxChecksumBytes.
func read(folder FS, name string) (size int64, sum uint32, err error) {
	file, err := folder.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := crc32.New(table)
	if size, err = io.Copy(hash, io.LimitReader(file, maxChecksumBytes)); err != nil || size < maxChecksumBytes {
		return size, hash.Sum32(), err
	}
	rest, err := io.Copy(io.Discard, file)
	return size + rest, 0, err
}

func readAll(folder FS, name string) ([]byte, error) {
	file, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return data, errors.Join(err, file.Close())
}
