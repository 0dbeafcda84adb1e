package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/controlplane/apiserver"
	"freshet/internal/controlplane/etcd"
)

// diskRoom keeps the last bytes of the data directory's disk for what must go on
// when it is full: a start, acknowledgements, deletions. Messages stop long before,
// at the reserve of their clusters (docs/adr/0021-a-reserve-for-the-next-start.md).
//
// It holds a file that takes space and has no contents. When the disk runs full,
// through whatever, the file is removed, and made again when there is room.
// Meanwhile log, audit trail and resources take nothing new. When the server stops,
// the file gets what the stores gave back, so that nobody else has it before the
// next start.
type diskRoom struct {
	path string
	size int64  // of the file while the server runs; 0 when there is none
	etcd string // folder of its files, some of which are larger than the space they have
	low  atomic.Bool
	log  atomic.Pointer[slog.Logger]
	// started says that every store is open: before that what is free is for them.
	started atomic.Bool

	mu    sync.Mutex // guards the file
	stop  context.CancelFunc
	ended chan struct{} // closed when run has ended; nil before own
}

const (
	roomFile     = "RESERVE"
	mostRoom     = 16 << 20
	roomShare    = 16 // of the disk, at most
	leastRoom    = 1 << 20
	roomInterval = time.Second
	// storeAhead is what etcd's file has behind its end: it grows there, however
	// full the disk is.
	storeAhead = 4 << 20
)

// openRoom looks at the disk for the first time. The directory may be another
// process' still: nothing is changed before own.
func openRoom(dir string) *diskRoom {
	r := &diskRoom{
		path: filepath.Join(dir, roomFile), etcd: filepath.Join(dir, "etcd"),
	}
	r.log.Store(slog.Default())
	var fs syscall.Statfs_t
	if os.MkdirAll(dir, 0o700) == nil && syscall.Statfs(dir, &fs) == nil {
		r.size = min(mostRoom, int64(fs.Blocks)*fs.Bsize/roomShare)
		r.low.Store(int64(fs.Bavail)*fs.Bsize < r.size/2)
	}
	return r
}

// own begins to keep the file, in a directory that is locked. What it had for the
// start is free from now on.
func (r *diskRoom) own() error {
	if info, err := os.Stat(r.path); err == nil && info.Size() > r.size {
		if err := os.Truncate(r.path, r.size); err != nil {
			return fmt.Errorf("giving back the reserve of the disk: %w", err)
		}
	}
	r.check()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.ended = cancel, make(chan struct{})
	go r.run(ctx)
	return nil
}

func (r *diskRoom) run(ctx context.Context) {
	defer close(r.ended)
	ticker := time.NewTicker(roomInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.check()
		}
	}
}

// close keeps room for the next start. Every store is closed by now.
func (r *diskRoom) close() error {
	if r.ended == nil {
		return nil
	}
	r.stop()
	<-r.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size > 0 {
		r.keep(r.size + etcd.Segment)
	}
	return nil
}

// keep makes the file as large as the disk allows, up to a size.
func (r *diskRoom) keep(most int64) {
	var held int64
	if info, err := os.Stat(r.path); err == nil {
		held = info.Size()
	}
	free, err := r.available()
	if err != nil {
		return
	}
	for size := min(most, held+free); size > held && size >= leastRoom; size -= leastRoom {
		if err := r.take(size, held); err == nil || !errors.Is(err, syscall.ENOSPC) {
			return
		}
	}
}

// available is the free space of the disk.
func (r *diskRoom) available() (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(r.path), &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}

// has says whether the disk has room for what is not needed to free some.
func (r *diskRoom) has() bool { return !r.low.Load() }

// check looks at the disk, and takes or gives back the file.
func (r *diskRoom) check() {
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
		r.tell(true, available)
	case available >= 3*r.size && !held:
		err = r.take(r.size, 0)
		r.tell(false, available)
	case !held:
		r.tell(available < 2*r.size, available)
	default:
		r.tell(false, available)
	}
	if !r.low.Load() && r.started.Load() {
		err = errors.Join(err, r.claimStore())
	}
	switch {
	case errors.Is(err, syscall.EOPNOTSUPP):
		r.log.Load().Warn("the file system gives no space in advance: there is no reserve for a full disk",
			slog.String("file", r.path))
		r.size = 0
	case err != nil && !errors.Is(err, os.ErrNotExist):
		r.log.Load().Warn("the reserve of the disk could not be changed", slog.String("file", r.path),
			slog.String("error", err.Error()))
	}
}

// tell notes whether the disk is full, and logs a change.
func (r *diskRoom) tell(low bool, available int64) {
	if r.low.Swap(low) == low {
		return
	}
	text := "disk has room again"
	if low {
		text = "disk is full: free some space; what is stored can be read, consumed and deleted meanwhile, and " +
			"resources, log and audit trail take nothing new"
	}
	r.log.Load().Warn(text, slog.String("dir", filepath.Dir(r.path)), slog.Int64("available", available))
}

// claimStore gives etcd's files the space that their sizes promise, and its store some
// to grow. etcd ends when it cannot write there, and with the space it can go on for
// long without more. It takes the space for its log itself, but not when a signal comes
// in between.
func (r *diskRoom) claimStore() error {
	logs, err := filepath.Glob(filepath.Join(r.etcd, "member", "wal", "*.wal"))
	if err == nil && len(logs) > 0 {
		err = claimFile(slices.Max(logs), 0)
	}
	return errors.Join(err, claimFile(filepath.Join(r.etcd, "member", "snap", "db"), min(storeAhead, r.size)))
}

// claimFile gives a file the space that its size promises, and some behind its end.
func claimFile(path string, ahead int64) error {
	var info syscall.Stat_t
	if err := syscall.Stat(path, &info); err != nil || info.Blocks*512 >= info.Size+ahead {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	const keepSize = 1 // FALLOC_FL_KEEP_SIZE: the file has space behind its end
	return errors.Join(allocate(file, keepSize, info.Size+ahead), file.Close())
}

// allocate takes the space for the beginning of a file. Where a signal has a file system
// give it all back it is tried again, some times.
func allocate(file *os.File, mode uint32, size int64) (err error) {
	for range 100 {
		if err = syscall.Fallocate(int(file.Fd()), mode, 0, size); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return err
}

// take makes the file so large, with space of its own. When that fails it has the
// size that it had.
func (r *diskRoom) take(size, had int64) error {
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = allocate(file, 0, size)
	if err = errors.Join(err, file.Close()); err == nil {
		return nil
	}
	if had == 0 {
		return errors.Join(err, os.Remove(r.path))
	}
	return errors.Join(err, os.Truncate(r.path, had))
}

var errDiskFull = errs.New(errs.Unavailable,
	"disk is full: resources can be read and deleted, but not created or changed until space is freed")

// keepRoom refuses calls that would store more while the disk is full. Reviews and
// tokens store nothing.
func (r *diskRoom) keepRoom(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		stores := req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch
		if stores && !r.has() && !strings.HasSuffix(req.URL.Path, "reviews") &&
			!strings.HasSuffix(req.URL.Path, "/token") {
			apiserver.Refuse(w, req, errDiskFull)
			return
		}
		next.ServeHTTP(w, req)
	})
}
