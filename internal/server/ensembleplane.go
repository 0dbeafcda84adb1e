package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"freshet/internal/controlplane/kinds/messagingcluster"
	"freshet/internal/dataplane"
	datagroup "freshet/internal/dataplane/ensemble"
	"freshet/internal/ensemble/remote"
)

// handOverTimeout is the timeout for handing shards over when the server stops. Other members
// take the remaining shards when this member's lease has expired.
const handOverTimeout = 3 * time.Second

const (
	startedPoll    = 100 * time.Millisecond
	startedTimeout = 2 * time.Second
)

// openShared returns the connection of the data plane to the other members, or nil for a
// single server.
func (s *server) openShared() (*datagroup.Ensemble, error) {
	if s.ensemble == nil {
		return nil, nil
	}
	log, err := s.ensemble.log.Connect("data plane")
	if err != nil {
		return nil, fmt.Errorf("connecting to the message log: %w", err)
	}
	return datagroup.New(datagroup.Options{
		Synced: s.logSynced(),
		Self:   s.cfg.Members.Self, Members: s.memberNames(), Live: s.liveMembers,
		Etcd: s.etcd, Session: s.ensemble.members.Session, Alive: s.ensemble.members.Alive, Prefix: s.cfg.Etcd.Prefix,
		Clusters: s.cfg.Path("clusters"), Log: log, Call: s.callMember, Logger: s.log,
	})
}

func (s *server) liveMembers() []string {
	var names []string
	for _, record := range s.ensemble.members.Live() {
		names = append(names, record.Name)
	}
	return names
}

// callMember returns the HTTP client and the URL for calls to a member.
func (s *server) callMember(name string) (via *http.Client, url string, err error) {
	client, ok := s.ensemble.network.Client(name)
	if !ok {
		return nil, "", fmt.Errorf("member %q is not in members.list", name)
	}
	return client, s.ensemble.network.URL(name, ""), nil
}

// shareDataPlane serves this member's shards to the other members, and follows the stored list
// of clusters that should run.
func (s *server) shareDataPlane(shared *datagroup.Ensemble) {
	if shared == nil {
		return
	}
	s.ensemble.plane = datagroup.NewPlane(s.plane, shared)
	s.ensemble.internal.handle(remote.Path, remote.NewServer(s.plane, s.log))
	s.ensemble.internal.handle(datagroup.CheckpointsPath+"/", shared.CheckpointHandler())
	s.ensemble.internal.handle(datagroup.ReleasePath, s.ensemble.plane.ReleaseHandler())
	s.ensemble.internal.handle(forwardPath, s.forwarded())
	s.ensemble.internal.handle("POST "+readingPath, http.HandlerFunc(s.serveReading))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.ensemble.opened = make(chan struct{})
	go func() {
		defer close(ended)
		s.ensemble.plane.Follow(ctx, s.ensemble.opened)
	}()
	s.closers = append(s.closers, func() error {
		cancel()
		<-ended
		return nil
	})
}

// clusterPlane returns the plane on which the MessagingCluster controller runs clusters.
func (s *server) clusterPlane() messagingcluster.Plane {
	if s.ensemble != nil {
		return s.ensemble.plane
	}
	return s.plane
}

// handOver hands this member's shards over to other members.
func (s *server) handOver(ctx context.Context) {
	if s.ensemble == nil || s.plane == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	s.plane.HandOver(ctx)
}

// stopInternal waits for running calls of other members, so that they do not fail.
func (s *server) stopInternal(ctx context.Context) {
	if s.ensemble == nil || s.ensemble.internal == nil {
		return
	}
	if err := s.ensemble.internal.shutdown(ctx); err != nil {
		s.log.Warn("calls of other members were aborted at the end of the drain time", slog.Any("error", err))
	}
}

// startedKey is the key in etcd that exists once the first start of the ensemble is done.
func (s *server) startedKey() string { return s.cfg.Etcd.Prefix + "/members/started" }

// awaitStarted waits until a member has done the first start of the ensemble.
func (s *server) awaitStarted(ctx context.Context) error {
	tick := time.NewTicker(startedPoll)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, startedTimeout)
		found, err := s.etcd.Get(asking, s.startedKey())
		cancel()
		if err == nil && len(found.Kvs) > 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// awaitOpened waits until this member has opened its clusters.
func (s *server) awaitOpened(ctx context.Context) error {
	text := "its clusters"
	s.waitsFor.Store(&text)
	select {
	case <-s.ensemble.opened:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.awaitClusters(ctx); err != nil {
		s.log.Warn("cluster is not open on this member yet; the other members serve it", slog.Any("error", err))
	}
	return nil
}

var _ messagingcluster.Plane = (*dataplane.Plane)(nil)
