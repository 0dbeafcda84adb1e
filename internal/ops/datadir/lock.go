package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrInUse means that another process has locked the data directory.
var ErrInUse = errors.New("in use by another freshet process")

// Lock is a file lock on the data directory, against other processes.
type Lock struct{ file *os.File }

// lockFile is the file that is locked.
const lockFile = "LOCK"

// maxAttempts is how often Acquire tries again because another process has removed the lock's file.
const maxAttempts = 10

// Acquire locks a data directory, and creates it if it does not exist.
func Acquire(dir string) (*Lock, error) {
	for attempt := 1; ; attempt++ {
		lock, err := acquire(dir)
		if err != nil {
			return nil, err
		}
		if lock.isCurrent(dir) {
			return lock, nil
		}
		_ = lock.Release() // a start that failed has removed the file
		if attempt == maxAttempts {
			return nil, fmt.Errorf("locking the data directory %s: other processes remove its lock file", dir)
		}
	}
}

// isCurrent reports whether the locked file is still the one in the directory.
func (l *Lock) isCurrent(dir string) bool {
	locked, err := l.file.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(filepath.Join(dir, lockFile))
	return err == nil && os.SameFile(locked, current)
}

func acquire(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data directory: %w", err)
	}
	path := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the data directory's lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path) // the pid is only for the message
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is %w%s; stop it, or choose another directory with --data-dir",
				dir, ErrInUse, describeHolder(string(holder)))
		}
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	err = errors.Join(file.Truncate(0), writeAt(file, fmt.Sprintf("%d\n", os.Getpid())))
	// The pid is only for messages, so the server starts without it if the disk is full.
	if err != nil && !errors.Is(err, syscall.ENOSPC) {
		_ = file.Close()
		return nil, fmt.Errorf("writing the data directory's lock: %w", err)
	}
	return &Lock{file}, nil
}

// Hold locks an existing directory without changing it.
func Hold(dir string) (*Lock, error) {
	path := filepath.Join(dir, lockFile)
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return &Lock{}, nil // no server has used the directory, or it is a copy
	}
	if err != nil {
		return nil, fmt.Errorf("opening the data directory's lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path) // the pid is only for the message
		_ = file.Close()
		return nil, fmt.Errorf("data directory %s is %w%s; stop it first", dir, ErrInUse,
			describeHolder(string(holder)))
	}
	return &Lock{file}, nil
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

// Release releases the lock.
func (l *Lock) Release() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
