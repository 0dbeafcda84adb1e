package natsserver

import (
	"context"
	"syscall"
	"time"
)

const (
	watchInterval = time.Second
	// reviveBytes is how much room the disk must have before the server is started
	// anew; less is gone at once.
	reviveBytes = 64 << 20
)

// watch looks whether the server has stopped its streams, which it does when it cannot
// write them, for want of room say, and does not take back. It is started anew then,
// as soon as there is room: what it missed it fetches from the others, and whoever is
// connected connects again.
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
			s.log.Errorf("The log of this member has stopped, since its disk in %s is full or fails; it starts "+
				"again by itself when %d MiB are free", s.dir, reviveBytes>>20)
			said = true
		}
		if free(s.dir) < reviveBytes {
			continue
		}
		s.end()
		<-s.started
		if err := s.launch(ctx); err != nil {
			s.log.Errorf("The log of this member could not be started again; it is tried again: %v", err)
			continue
		}
		s.log.Warnf("The log of this member runs again")
	}
}

// free is the room on a folder's disk; 0 when that is not known.
func free(dir string) uint64 {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0
	}
	return disk.Bavail * uint64(disk.Bsize) //nolint:gosec // a size
}
