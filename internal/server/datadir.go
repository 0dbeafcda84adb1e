package server

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// errDirectoryInUse says that another process has the data directory.
var errDirectoryInUse = errors.New("in use by another freshet process")

// lock keeps a second process off the data directory.
type lock struct{ file *os.File }

// lockDir takes the directory, making it when it is new.
func lockDir(dir string) (*lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	path := filepath.Join(dir, "LOCK")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the data directory's lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path) // the holder's number is a courtesy
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is %w%s: stop it, or choose another directory with --data-dir",
				dir, errDirectoryInUse, describeHolder(string(holder)))
		}
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	err = errors.Join(file.Truncate(0), writeAt(file, fmt.Sprintf("%d\n", os.Getpid())))
	// the number is a courtesy, and a full disk is no reason not to start
	if err != nil && !errors.Is(err, syscall.ENOSPC) {
		_ = file.Close()
		return nil, fmt.Errorf("writing the data directory's lock: %w", err)
	}
	return &lock{file}, nil
}

// holdDir keeps servers off a directory that is there, without changing it.
func holdDir(dir string) (*lock, error) {
	path := filepath.Join(dir, "LOCK")
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return &lock{}, nil // no server was ever here, or it is a copy
	}
	if err != nil {
		return nil, fmt.Errorf("opening the data directory's lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path) // the holder's number is a courtesy
		_ = file.Close()
		return nil, fmt.Errorf("data directory %s is %w%s: stop it first", dir, errDirectoryInUse,
			describeHolder(string(holder)))
	}
	return &lock{file}, nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

func describeHolder(pid string) string {
	if pid = strings.TrimSpace(pid); pid != "" {
		return " (pid " + pid + ")"
	}
	return ""
}

// release gives the directory up.
func (l *lock) release() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// countLines counts the lines of a file, and those that are no JSON. The last line
// is not counted when it is half of one.
func countLines(path string) (lines, bad int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = file.Close() }() // it was only read
	in := bufio.NewReader(file)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return lines, bad, nil
		}
		if err != nil {
			return lines, bad, err
		}
		if lines++; !json.Valid(line) {
			bad++
		}
	}
}

// writeSecret writes a file that only its owner can read, whole or not at all.
func writeSecret(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // gone already when all went well
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(0o600), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// secretFile reads a random text from a file, making it at the first start. The
// file holds the text and no newline.
func secretFile(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err == nil {
		text := strings.TrimSpace(string(data))
		switch {
		case text == string(data) && text != "":
			return text, nil
		case text != "":
			// Clients put what they read into a header as it is.
			return text, writeSecret(path, []byte(text))
		}
		return "", fmt.Errorf("%s is empty: remove it to have a new one made", path)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails: crypto/rand aborts the process instead
	text := base64.RawURLEncoding.EncodeToString(raw)
	return text, writeSecret(path, []byte(text))
}
