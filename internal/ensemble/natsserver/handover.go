package natsserver

import (
	"context"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
)

const (
	handOverTimeout  = 2 * time.Second
	handOverInterval = 10 * time.Millisecond
)

// handOver steps down before the server stops. Otherwise the other servers would elect
// leaders only after their election timeout (elections.go). handOver has a timeout, because
// the other servers may be stopped too.
func (s *Server) handOver() {
	ctx, cancel := context.WithTimeout(context.Background(), handOverTimeout)
	defer cancel()
	_, _ = s.StepDown(ctx) // on failure the election timeout applies
}

// StepDown gives up the streams that this server leads, waits until other servers lead
// them, and returns their number. This server may be elected again later.
func (s *Server) StepDown(ctx context.Context) (streams int, err error) {
	if s.nats.Load().ClusterAddr() == nil || !s.nats.Load().JetStreamEnabled() || s.peers() == 0 {
		return 0, errNoPeer
	}
	steppedDown := map[string]bool{}
	for {
		waiting := false
		for stream, leader := range s.leaders() {
			if leader == s.nats.Load().Name() {
				steppedDown[stream] = true
				// On failure the server no longer leads the stream.
				_ = s.nats.Load().JetStreamStepdownStream(server.DEFAULT_GLOBAL_ACCOUNT, stream)
			}
			waiting = waiting || leader == s.nats.Load().Name() || leader == ""
		}
		if !waiting {
			return len(steppedDown), nil
		}
		if s.peers() == 0 {
			return 0, errNoPeer
		}
		if retry.Sleep(ctx, handOverInterval) != nil {
			return 0, errs.Newf(errs.Unavailable,
				"some streams of the log have no new leader yet; try again: %w", ctx.Err())
		}
	}
}

var errNoPeer = errs.New(errs.Unavailable, "this member has no connection to another member that could lead the log")

// leaders returns the leader of each replicated stream of this server, as far as this
// server knows; "" when it knows none.
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
