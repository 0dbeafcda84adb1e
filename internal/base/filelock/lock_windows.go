package filelock

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// lockFileEx is a call of Windows that package syscall does not have.
var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

const (
	failImmediately = 1
	exclusiveLock   = 2
	// errLockViolation is the code of a lock that another process holds.
	errLockViolation = syscall.Errno(33)
	// behindEnd is the high half of the offset of the locked byte: locks of Windows keep other processes from
	// reading the locked bytes, so the lock is behind the end of any file.
	behindEnd = 1 << 30
)

func lock(file *os.File, exclusive, wait bool) error {
	var flags uintptr
	if exclusive {
		flags |= exclusiveLock
	}
	if !wait {
		flags |= failImmediately
	}
	at := syscall.Overlapped{OffsetHigh: behindEnd}
	locked, _, err := lockFileEx.Call(file.Fd(), flags, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case locked != 0:
		return nil
	case errors.Is(err, errLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return ErrHeld
	}
	return err
}
