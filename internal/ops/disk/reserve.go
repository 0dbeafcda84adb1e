package disk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"freshet/internal/base/retry"
)

// Reserve reserves disk space on the file system of the data directory for operations that
// must work when the disk is full: starting, acknowledging, deleting. New messages are
// rejected long before, at the disk reserve of the clusters
// (docs/adr/0021-disk-reserve-for-the-next-start.md).
//
// The reserve is a file with allocated space and no contents. When the disk is full,
// Reserve removes the file, and creates it again when enough space is free. In between, the
// log, the audit log and the resource API write nothing new. When the server stops, the file
// grows by the space that the stores have released, so that no other program takes it before
// the next start.
type Reserve struct {
	path string
	size int64  // of the file while the server runs; 0 if there is no reserve. Protected by mu.
	etcd string // folder of etcd's files, some of which are larger than their allocated space
	// atStop is the additional size of the file while the server is stopped.
	atStop int64
	low    atomic.Bool
	log    atomic.Pointer[slog.Logger]
	// started is set when every store is open. Before that, the free space is for opening
	// them.
	started atomic.Bool

	mu    sync.Mutex // protects the file and its size
	stop  context.CancelFunc
	ended chan struct{} // closed when run has ended; nil before Maintain
}

const (
	reserveFile     = "RESERVE"
	maxReserve      = 16 << 20
	reserveDivisor  = 16 // the file takes at most this fraction of the disk
	minReserve      = 1 << 20
	reserveInterval = time.Second
	// storeAhead is how much space is allocated beyond the end of etcd's file, so that the
	// file can grow when the disk is full.
	storeAhead = 4 << 20
)

// OpenReserve checks the disk for the first time. It changes nothing, because another process
// may still use the directory; Maintain does. While the server is stopped, the file is larger
// by atStop, which is the space that the stores allocate when they start.
func OpenReserve(dir string, atStop int64) *Reserve {
	r := &Reserve{
		path: filepath.Join(dir, reserveFile), etcd: filepath.Join(dir, "etcd"), atStop: atStop,
	}
	r.log.Store(slog.Default())
	if os.MkdirAll(dir, 0o700) != nil {
		return r
	}
	if total, free, err := Space(dir); err == nil {
		r.size = min(maxReserve, total/reserveDivisor)
		r.low.Store(free < r.size/2)
	}
	return r
}

// SetLogger sets the logger. Before that, the reserve uses the default logger.
func (r *Reserve) SetLogger(log *slog.Logger) { r.log.Store(log) }

// StoresOpen records that every store is open. From then on the reserve allocates the disk
// space of etcd's files.
func (r *Reserve) StoresOpen() { r.started.Store(true) }

// Maintain starts to maintain the file. The directory must be locked. It releases the extra space
// that Close reserved for the start.
func (r *Reserve) Maintain() error {
	if info, err := os.Stat(r.path); err == nil && info.Size() > r.size {
		if err := os.Truncate(r.path, r.size); err != nil {
			return fmt.Errorf("releasing the disk reserve: %w", err)
		}
	}
	r.check()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.ended = cancel, make(chan struct{})
	go r.run(ctx)
	return nil
}

func (r *Reserve) run(ctx context.Context) {
	defer close(r.ended)
	for range retry.Every(ctx, reserveInterval) {
		r.check()
	}
}

// Close reserves space for the next start. Every store must be closed.
func (r *Reserve) Close() error {
	if r.ended == nil {
		return nil
	}
	r.stop()
	<-r.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size > 0 {
		r.growLocked(r.size + r.atStop)
	}
	return nil
}

// growLocked enlarges the file to most bytes, or as far as the disk allows. It is called with mu
// held.
func (r *Reserve) growLocked(most int64) {
	var held int64
	if info, err := os.Stat(r.path); err == nil {
		held = info.Size()
	}
	free, err := r.available()
	if err != nil {
		return
	}
	for size := min(most, held+free); size > held && size >= minReserve; size -= minReserve {
		if err := r.allocateFileLocked(size, held); err == nil || !errors.Is(err, syscall.ENOSPC) {
			return
		}
	}
}

// available returns the free space of the disk.
func (r *Reserve) available() (int64, error) {
	_, free, err := r.Space()
	return free, err
}

// HasSpace reports whether the disk has space for writes that are not needed to free space.
func (r *Reserve) HasSpace() bool { return !r.low.Load() }

// check checks the free space, and creates or removes the file.
func (r *Reserve) check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size == 0 {
		return
	}
	available, err := r.available()
	if err != nil {
		return
	}
	info, err := os.Stat(r.path)
	held := err == nil
	switch {
	case available < r.size/2 && held:
		err = os.Remove(r.path)
		available += info.Size()
		r.setLowLocked(true, available)
	case available >= 3*r.size && !held:
		err = r.allocateFileLocked(r.size, 0)
		r.setLowLocked(false, available)
	case !held:
		r.setLowLocked(available < 2*r.size, available)
	default:
		r.setLowLocked(false, available)
	}
	if !r.low.Load() && r.started.Load() {
		err = errors.Join(err, r.claimStoreLocked())
	}
	switch {
	case errors.Is(err, syscall.EOPNOTSUPP):
		r.log.Load().Warn("file system does not support fallocate; running without a disk reserve",
			slog.String("file", r.path))
		r.size = 0
	case err != nil && !errors.Is(err, os.ErrNotExist):
		r.log.Load().Warn("disk reserve could not be changed; retrying", slog.String("file", r.path),
			slog.Any("error", err))
	}
}

// setLowLocked stores whether the disk is full, and logs changes.
func (r *Reserve) setLowLocked(low bool, available int64) {
	if r.low.Swap(low) == low {
		return
	}
	text := "disk has free space again"
	if low {
		text = "disk is full; free some space. Reading, consuming and deleting still work; resources, log and audit " +
			"log write nothing new"
	}
	r.log.Load().Warn(text, slog.String("dir", filepath.Dir(r.path)), slog.Int64("available", available))
}

// claimStoreLocked allocates the disk space of etcd's files up to their sizes, and some more for
// its store to grow. etcd exits when a write fails; with allocated space it can run for long
// on a full disk. etcd allocates the space for its write-ahead log itself, but not if a
// signal interrupts it.
func (r *Reserve) claimStoreLocked() error {
	logs, err := filepath.Glob(filepath.Join(r.etcd, "member", "wal", "*.wal"))
	if err == nil && len(logs) > 0 {
		err = claimFile(slices.Max(logs), 0)
	}
	return errors.Join(err, claimFile(filepath.Join(r.etcd, "member", "snap", "db"), min(storeAhead, r.size)))
}

// allocateFileLocked creates or enlarges the file to size bytes of allocated space. If that fails it
// restores the old size.
func (r *Reserve) allocateFileLocked(size, had int64) error {
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = allocate(file, size)
	if err = errors.Join(err, file.Close()); err == nil {
		return nil
	}
	if had == 0 {
		return errors.Join(err, os.Remove(r.path))
	}
	return errors.Join(err, os.Truncate(r.path, had))
}
