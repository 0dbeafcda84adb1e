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

// errDirectoryInUse means that another process has locked the data directory.
var errDirectoryInUse = errors.New("in use by another freshet process")

// lock is a file lock on the data directory, against other processes.
type lock struct{ file *os.File }

// lockDir locks the directory, and creates it if it does not exist.
func lockDir(dir string) (*lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data directory: %w", err)
	}
	path := filepath.Join(dir, "LOCK")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the data directory's lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path) // the pid is only for the message
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is %w%s; stop it, or choose another directory with --data-dir",
				dir, errDirectoryInUse, describeHolder(string(holder)))
		}
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	err = errors.Join(file.Truncate(0), writeAt(file, fmt.Sprintf("%d\n", os.Getpid())))
	// The pid is only for messages, so the server starts without it if the disk is full.
	if err != nil && !errors.Is(err, syscall.ENOSPC) {
		_ = file.Close()
		return nil, fmt.Errorf("writing the data directory's lock: %w", err)
	}
	return &lock{file}, nil
}

// holdDir locks an existing directory without changing it.
func holdDir(dir string) (*lock, error) {
	path := filepath.Join(dir, "LOCK")
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return &lock{}, nil // no server has used the directory, or it is a copy
	}
	if err != nil {
		return nil, fmt.Errorf("opening the data directory's lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path) // the pid is only for the message
		_ = file.Close()
		return nil, fmt.Errorf("data directory %s is %w%s; stop it first", dir, errDirectoryInUse,
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

// release releases the lock.
func (l *lock) release() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// countLines returns the number of lines of a file, and of those that are not JSON. It does
// not count an incomplete last line.
func countLines(path string) (lines, bad int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = file.Close() }() // opened for reading only
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

// writeSecret atomically writes a file that only its owner can read.
func writeSecret(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // does not exist any more after the rename
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

// secretFile reads a secret from a file, and creates a random one at the first start. The
// file contains the secret without a newline.
func secretFile(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err == nil {
		text := strings.TrimSpace(string(data))
		switch {
		case text == string(data) && text != "":
			return text, nil
		case text != "":
			// Clients copy the contents into a header, so the newline must be removed.
			return text, writeSecret(path, []byte(text))
		}
		return "", fmt.Errorf("%s is empty; remove it, and the next start creates a new one", path)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never returns an error; crypto/rand aborts the process instead
	text := base64.RawURLEncoding.EncodeToString(raw)
	return text, writeSecret(path, []byte(text))
}
