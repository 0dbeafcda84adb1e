package natsserver

import (
	"context"
	"syscall"
	"time"
)

const (
	watchInterval = time.Second
	// restartBytes is the free disk space required to restart the server; with less the
	// disk would soon be full again.
	restartBytes = 64 << 20
)

// watch keeps the server running until the context ends. It restarts the server after it has stopped its
// streams, records the floors of its logs, and examines suspicions about its files.
//
// nats-server stops the streams when a write fails, for example on a full disk, and never resumes. watch
// restarts it as soon as the disk has free space. The server then fetches the messages that it missed
// from the other servers, and clients reconnect.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	logged := false
	for {
		select {
		case <-ctx.Done():
			return
		case found := <-s.suspicions:
			s.examine(ctx, found)
		case <-tick.C:
			if s.nats.Load().JetStreamEnabled() {
				logged = false
				s.floors.record()
				s.finishRejoining()
				continue
			}
			if !logged {
				s.log.Errorf("replicated log of this member has stopped because the disk of %s is full or fails; "+
					"it restarts automatically when %d MiB are free", s.dir, restartBytes>>20)
				logged = true
			}
			s.restart(ctx)
		}
	}
}

// restart starts the server again if the disk has enough space. It fetches a good copy first if files
// are damaged.
func (s *Server) restart(ctx context.Context) {
	if freeBytes(s.opts.stateDir()) < restartBytes {
		return
	}
	s.stop()
	if err := s.open(ctx); err != nil {
		s.log.Errorf("restarting the replicated log of this member failed; retrying: %v", err)
		return
	}
	s.log.Warnf("replicated log of this member runs again")
}

// freeBytes returns the free space of a directory's disk; 0 when it is unknown.
func freeBytes(dir string) uint64 {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0
	}
	return disk.Bavail * uint64(disk.Bsize) //nolint:gosec // a size
}
