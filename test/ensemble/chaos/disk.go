package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// SmallDisk is a mounted tmpfs of limited size. Mounting needs root.
type SmallDisk struct{ Dir string }

// MountSmallDisk mounts a tmpfs of the given size at a folder.
func MountSmallDisk(dir string, size int) (*SmallDisk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		return nil, fmt.Errorf("mounting a small disk: %w", err)
	}
	return &SmallDisk{dir}, nil
}

// Close unmounts the disk.
func (d *SmallDisk) Close() error { return syscall.Unmount(d.Dir, syscall.MNT_DETACH) }

// Full returns a fault that fills the disk to the last byte; healing removes the file.
func (d *SmallDisk) Full(name string, hold time.Duration) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(context.Context) (func(context.Context) error, error) {
		filler := filepath.Join(d.Dir, "filler")
		heal := func(context.Context) error { return os.Remove(filler) }
		return heal, fill(filler)
	}}
}

// fill writes a file until the disk is full.
func fill(path string) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	block := make([]byte, 1<<20)
	for size := len(block); size > 0; {
		if _, err := file.Write(block[:size]); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				return err
			}
			size /= 2
		}
	}
	return nil
}

// SlowDisk writes and syncs continuously on the members' disk, so that their own syncs are
// slow.
func (g *Ensemble) SlowDisk(name string, hold time.Duration) Fault {
	return Fault{Name: name, Hold: hold, Inject: func(ctx context.Context) (func(context.Context) error, error) {
		ctx, stop := context.WithCancel(ctx)
		var writers sync.WaitGroup
		failed := make(chan error, 4)
		for i := range cap(failed) {
			writers.Go(func() { failed <- churn(ctx, filepath.Join(g.o.Dir, fmt.Sprintf("busy-%d", i))) })
		}
		return func(context.Context) error {
			stop()
			writers.Wait()
			close(failed)
			var err error
			for e := range failed {
				err = errors.Join(err, e)
			}
			return err
		}, nil
	}}
}

// churn writes and syncs 8 MiB repeatedly until the context ends.
func churn(ctx context.Context, path string) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(path)) }()
	block := make([]byte, 8<<20)
	for ctx.Err() == nil {
		if _, err := file.WriteAt(block, 0); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
	}
	return nil
}
