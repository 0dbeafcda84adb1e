// Package filelock locks open files against other processes: flock on Unix systems, LockFileEx on Windows. A lock
// ends when the file is closed or the process ends. The package has no state.
package filelock

import (
	"errors"
	"os"
)

// ErrHeld is the error of a lock that another process holds.
var ErrHeld = errors.New("another process holds the lock")

// Lock waits until no other process holds a lock of the file, and locks it exclusively.
func Lock(file *os.File) error { return lock(file, true, true) }

// Try locks the file exclusively, or returns ErrHeld.
func Try(file *os.File) error { return lock(file, true, false) }

// TryShared locks the file together with other shared locks, or returns ErrHeld.
func TryShared(file *os.File) error { return lock(file, false, false) }
