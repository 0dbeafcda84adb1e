package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"freshet/internal/controlplane/kinds/messagingcluster"
	"freshet/internal/dataplane"
	datagroup "freshet/internal/dataplane/group"
	"freshet/internal/ensemble/remote"
)

// handOverTime bounds how long shards are handed over when the server stops; what is
// not by then another member takes when this one's lease has ended.
const handOverTime = 3 * time.Second

const (
	startedPoll    = 100 * time.Millisecond
	startedTimeout = 2 * time.Second
)

// openShared connects the data plane with the other members.
func (s *server) openShared() (*datagroup.Group, error) {
	if s.group == nil {
		return nil, nil
	}
	log, err := s.group.log.Connect("data plane")
	if err != nil {
		return nil, fmt.Errorf("connecting to the log of messages: %w", err)
	}
	return datagroup.New(datagroup.Options{
		Synced: s.logSynced(),
		Self:   s.cfg.Members.Self, Members: s.memberNames(), Live: s.liveMembers,
		Etcd: s.etcd, Session: s.group.members.Session, Alive: s.group.members.Alive, Prefix: s.cfg.Etcd.Prefix,
		Clusters: s.cfg.Path("clusters"), Log: log, Call: s.callMember, Logger: s.log,
	})
}

func (s *server) liveMembers() []string {
	var names []string
	for _, record := range s.group.members.Live() {
		names = append(names, record.Name)
	}
	return names
}

// callMember returns what calls a member, and where it is.
func (s *server) callMember(name string) (via *http.Client, url string, err error) {
	client, ok := s.group.network.Client(name)
	if !ok {
		return nil, "", fmt.Errorf("there is no member %q in members.list", name)
	}
	return client, s.group.network.URL(name, ""), nil
}

// sharePlane lets the other members use this one's shards, and follows which clusters
// should run.
func (s *server) sharePlane(shared *datagroup.Group) {
	if shared == nil {
		return
	}
	s.group.plane = datagroup.NewPlane(s.plane, shared)
	s.group.internal.handle(remote.Path, remote.NewServer(s.plane, s.log))
	s.group.internal.handle(datagroup.CheckpointsPath+"/", shared.Checkpoints())
	s.group.internal.handle(datagroup.ReleasePath, s.group.plane.Releases())
	s.group.internal.handle(forwardPath, s.forwarded())
	s.group.internal.handle("POST "+readingPath, http.HandlerFunc(s.tellReading))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.group.opened = make(chan struct{})
	go func() {
		defer close(ended)
		s.group.plane.Follow(ctx, s.group.opened)
	}()
	s.closers = append(s.closers, func() error {
		cancel()
		<-ended
		return nil
	})
}

// clusterPlane is where clusters run.
func (s *server) clusterPlane() messagingcluster.Plane {
	if s.group != nil {
		return s.group.plane
	}
	return s.plane
}

// handOver gives this member's shards to others.
func (s *server) handOver(ctx context.Context) {
	if s.group == nil || s.plane == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	s.plane.HandOver(ctx)
}

// stopInternal ends what other members have sent here, which they would otherwise have
// to call broken.
func (s *server) stopInternal(ctx context.Context) {
	if s.group == nil || s.group.internal == nil {
		return
	}
	if err := s.group.internal.shutdown(ctx); err != nil {
		s.log.Warn("calls of other members were cut off at the end of the drain time",
			slog.String("error", err.Error()))
	}
}

// startedKey is there once the group has had its first start.
func (s *server) startedKey() string { return s.cfg.Etcd.Prefix + "/members/started" }

// awaitStarted waits until some member has made what a first start makes.
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

// awaitOpened waits until this member has opened what should run.
func (s *server) awaitOpened(ctx context.Context) error {
	text := "its clusters"
	s.waits.Store(&text)
	select {
	case <-s.group.opened:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.awaitClusters(ctx); err != nil {
		s.log.Warn("a cluster is not open on this member yet; the others serve it", slog.String("error", err.Error()))
	}
	return nil
}

var _ messagingcluster.Plane = (*dataplane.Plane)(nil)
