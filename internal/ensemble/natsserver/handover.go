package natsserver

import (
	"context"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"freshet/internal/base/errs"
)

const (
	handOverTimeout  = 2 * time.Second
	handOverInterval = 10 * time.Millisecond
)

// handOver steps down before the server ends: the others would take four to nine seconds
// to notice that it is gone. It gives up after a while, since they may be gone, too.
func (s *Server) handOver() {
	ctx, cancel := context.WithTimeout(context.Background(), handOverTimeout)
	defer cancel()
	_, _ = s.StepDown(ctx) // then they notice
}

// StepDown gives up the streams that this server leads, waits until others lead them,
// and returns how many those were. This server may be elected again later.
func (s *Server) StepDown(ctx context.Context) (streams int, err error) {
	if s.nats.Load().ClusterAddr() == nil || !s.nats.Load().JetStreamEnabled() || s.peers() == 0 {
		return 0, errNoPeer
	}
	given := map[string]bool{}
	for {
		waiting := false
		for stream, leader := range s.leaders() {
			if leader == s.nats.Load().Name() {
				given[stream] = true
				// else it has by itself
				_ = s.nats.Load().JetStreamStepdownStream(server.DEFAULT_GLOBAL_ACCOUNT, stream)
			}
			waiting = waiting || leader == s.nats.Load().Name() || leader == ""
		}
		if !waiting {
			return len(given), nil
		}
		if s.peers() == 0 {
			return 0, errNoPeer
		}
		select {
		case <-ctx.Done():
			return 0, errs.Newf(errs.Unavailable,
				"some streams of the log have no other leader yet, ask again for them: %w", ctx.Err())
		case <-time.After(handOverInterval):
		}
	}
}

var errNoPeer = errs.New(errs.Unavailable, "this member is connected to no other one that could lead the log")

// leaders returns who leads each replicated stream of this server, as far as it
// knows.
func (s *Server) leaders() map[string]string {
	info, err := s.nats.Load().Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			if stream.Cluster != nil && len(stream.Cluster.Replicas) > 0 {
				out[stream.Name] = stream.Cluster.Leader
			}
		}
	}
	return out
}
