package natsserver

import (
	"context"
	"syscall"
	"time"

	"freshet/internal/base/retry"
)

const (
	watchInterval = time.Second
	// restartBytes is the free disk space required to restart the server; with less the
	// disk would soon be full again.
	restartBytes = 64 << 20
)

// watch restarts the server after it has stopped its streams. nats-server stops them when a
// write fails, for example on a full disk, and never resumes. watch restarts it as soon as
// the disk has free space. The server then fetches the messages that it missed from the
// other servers, and clients reconnect.
func (s *Server) watch(ctx context.Context) {
	logged := false
	for range retry.Every(ctx, watchInterval) {
		if s.nats.Load().JetStreamEnabled() {
			logged = false
			continue
		}
		if !logged {
			s.log.Errorf("replicated log of this member has stopped because the disk of %s is full or fails; "+
				"it restarts automatically when %d MiB are free", s.dir, restartBytes>>20)
			logged = true
		}
		if freeBytes(s.dir) < restartBytes {
			continue
		}
		s.shutdown()
		<-s.started
		if err := s.launch(ctx); err != nil {
			s.log.Errorf("restarting the replicated log of this member failed; retrying: %v", err)
			continue
		}
		s.log.Warnf("replicated log of this member runs again")
	}
}

// freeBytes returns the free space of a directory's disk; 0 when it is unknown.
func freeBytes(dir string) uint64 {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0
	}
	return disk.Bavail * uint64(disk.Bsize) //nolint:gosec // a size
}
