package natsserver

import (
	"os"
	"path/filepath"
	"reflect"

	"github.com/nats-io/nats-server/v2/server"

	"freshet/internal/ensemble/natsserver/natsfiles"
)

// floorRecorder records what the logs of the running server contain, so that the next start notices a log
// that has lost its end. Only the watch goroutine uses it, and Start before that.
//
// The values are read from the server first and stored after that, so the files have at least what is
// recorded. Every server syncs its Raft logs with each write, so a power cut does not change that.
type floorRecorder struct {
	s      *Server
	last   natsfiles.Floors
	loaded bool
	failed bool // the last attempt to store them
}

func newFloorRecorder(s *Server) *floorRecorder { return &floorRecorder{s: s} }

// forget drops the floors, because the files are discarded.
func (r *floorRecorder) forget() { r.last, r.loaded = natsfiles.Floors{}, true }

// record stores the floors if they have changed.
func (r *floorRecorder) record() {
	path := r.s.statePath(floorsFile)
	if !r.loaded {
		r.last, _ = natsfiles.ReadFloors(path) // those that cannot be read are begun again
		r.loaded = true
	}
	groups := r.groups()
	if groups == nil {
		return
	}
	next := natsfiles.Floors{Groups: groups}
	if reflect.DeepEqual(groups, r.last.Groups) && !r.failed {
		return
	}
	err := natsfiles.WriteFloors(path, next)
	if err != nil && !r.failed {
		r.s.log.Warnf("ends of the logs could not be recorded; a log that loses its end is noticed later: %v", err)
	}
	if r.failed = err != nil; err == nil {
		r.last = next
	}
}

// groups returns the floors of the Raft groups; nil while the server is starting or stopping.
func (r *floorRecorder) groups() map[string]natsfiles.GroupFloor {
	ns := r.s.nats.Load()
	out := map[string]natsfiles.GroupFloor{}
	dir := filepath.Join(r.s.filesPath(), systemDir)
	for _, account := range raftAccounts {
		status := ns.Raftz(&server.RaftzOptions{AccountFilter: account})
		if status == nil {
			return nil
		}
		for _, found := range *status {
			for name, g := range found {
				if _, err := os.Stat(filepath.Join(dir, name, "msgs")); err != nil || g.WALError != nil {
					continue // a group in memory, or one that is being deleted
				}
				floor := r.last.Groups[name]
				floor.Committed = max(floor.Committed, min(g.Committed, g.PIndex))
				if term, peers := natsfiles.ReadVote(dir, name); term > 0 && peers != "" {
					floor.Term, floor.Peers = max(floor.Term, term), peers
				}
				out[name] = floor
			}
		}
	}
	for name, floor := range r.last.Groups { // groups that the server has not opened yet
		if _, ok := out[name]; ok {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			out[name] = floor
		}
	}
	return out
}
