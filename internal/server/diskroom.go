package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"freshet/internal/errs"
	"freshet/internal/resources"
)

// diskRoom keeps the last bytes of the data directory's disk for what must go on
// when it is full: a start, acknowledgements, deletions. Messages stop long before,
// at the reserve of their clusters.
//
// It holds a file that takes space and has no contents. When the disk runs full,
// through whatever, the file is removed, and made again when there is room.
// Meanwhile log, audit trail and resources take nothing new.
type diskRoom struct {
	path  string
	size  int64
	store string // etcd's file, which is larger than the space it has
	low   atomic.Bool
	log   atomic.Pointer[slog.Logger]

	mu    sync.Mutex // guards the file
	stop  context.CancelFunc
	ended chan struct{}
}

const (
	roomFile     = "RESERVE"
	mostRoom     = 16 << 20
	roomShare    = 16 // of the disk, at most
	roomInterval = time.Second
)

// openRoom looks at the disk for the first time, before anything is written.
func openRoom(dir string) *diskRoom {
	r := &diskRoom{
		path: filepath.Join(dir, roomFile), store: filepath.Join(dir, "etcd", "member", "snap", "db"),
		ended: make(chan struct{}),
	}
	r.log.Store(slog.Default())
	var fs syscall.Statfs_t
	if os.MkdirAll(dir, 0o700) == nil && syscall.Statfs(dir, &fs) == nil {
		r.size = min(mostRoom, int64(fs.Blocks)*fs.Bsize/roomShare)
		r.check()
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go r.run(ctx)
	return r
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

func (r *diskRoom) close() error {
	r.stop()
	<-r.ended
	return nil
}

// has says whether the disk has room for what is not needed to free some.
func (r *diskRoom) has() bool { return !r.low.Load() }

// check looks at the disk, and takes or gives back the file.
func (r *diskRoom) check() {
	var fs syscall.Statfs_t
	if r.size == 0 || syscall.Statfs(filepath.Dir(r.path), &fs) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	available := int64(fs.Bavail) * fs.Bsize
	_, err := os.Stat(r.path)
	held := err == nil
	switch {
	case available < r.size/2 && held:
		err = os.Remove(r.path)
		available += r.size
		r.tell(true, available)
	case available >= 3*r.size && !held:
		err = r.take()
		r.tell(false, available)
	case !held:
		r.tell(available < 2*r.size, available)
	default:
		r.tell(false, available)
	}
	if !r.low.Load() {
		err = errors.Join(err, r.claimStore())
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.log.Load().Warn("the reserve of the disk could not be changed", slog.String("file", r.path), slog.String("error", err.Error()))
	}
}

// tell notes whether the disk is full, and logs a change.
func (r *diskRoom) tell(low bool, available int64) {
	if r.low.Swap(low) == low {
		return
	}
	text := "disk has room again"
	if low {
		text = "disk is full: free some space; what is stored can be read, consumed and deleted meanwhile, and resources, log and audit trail take nothing new"
	}
	r.log.Load().Warn(text, slog.String("dir", filepath.Dir(r.path)), slog.Int64("available", available))
}

// claimStore gives etcd's file the space that its size promises. etcd ends when it
// cannot write there, and with the space it can go on for long without more.
func (r *diskRoom) claimStore() error {
	var info syscall.Stat_t
	if err := syscall.Stat(r.store, &info); err != nil || info.Blocks*512 >= info.Size {
		return err
	}
	file, err := os.OpenFile(r.store, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(syscall.Fallocate(int(file.Fd()), 0, 0, info.Size), file.Close())
}

// take makes the file, with space of its own.
func (r *diskRoom) take() error {
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Fallocate(int(file.Fd()), 0, 0, r.size)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(r.path))
	}
	return nil
}

var errDiskFull = errs.New(errs.Unavailable, "disk is full: resources can be read and deleted, but not created or changed until space is freed")

// keepRoom refuses calls that would store more while the disk is full. Reviews and
// tokens store nothing.
func (r *diskRoom) keepRoom(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		stores := req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch
		if stores && !r.has() && !strings.HasSuffix(req.URL.Path, "reviews") && !strings.HasSuffix(req.URL.Path, "/token") {
			resources.Refuse(w, req, errDiskFull)
			return
		}
		next.ServeHTTP(w, req)
	})
}
