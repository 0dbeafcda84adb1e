package natsserver

import (
	"context"
	"syscall"
	"time"
)

const (
	watchInterval = time.Second
	// reviveBytes is the free disk space required to restart the server; with less the
	// disk would soon be full again.
	reviveBytes = 64 << 20
)

// watch restarts the server after it has stopped its streams. nats-server stops them when a
// write fails, for example on a full disk, and never resumes. watch restarts it as soon as
// the disk has free space. The server then fetches the messages that it missed from the
// other servers, and clients reconnect.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	said := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.nats.Load().JetStreamEnabled() {
			said = false
			continue
		}
		if !said {
			s.log.Errorf("replicated log of this member has stopped because the disk of %s is full or fails; "+
				"it restarts automatically when %d MiB are free", s.dir, reviveBytes>>20)
			said = true
		}
		if free(s.dir) < reviveBytes {
			continue
		}
		s.end()
		<-s.started
		if err := s.launch(ctx); err != nil {
			s.log.Errorf("restarting the replicated log of this member failed; retrying: %v", err)
			continue
		}
		s.log.Warnf("replicated log of this member runs again")
	}
}

// free returns the free space of a directory's disk; 0 when it is unknown.
func free(dir string) uint64 {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0
	}
	return disk.Bavail * uint64(disk.Bsize) //nolint:gosec // a size
}
