package natsserver

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	handOverTimeout  = 2 * time.Second
	handOverInterval = 10 * time.Millisecond
)

// handOver gives up the streams that this server leads and waits until others
// lead them: they would take four to nine seconds to notice that it is gone. It
// gives up after a while, since the others may be gone, too.
func (s *Server) handOver() {
	if s.nats.Load().ClusterAddr() == nil || !s.nats.Load().JetStreamEnabled() || s.peers() == 0 {
		return
	}
	deadline := time.NewTimer(handOverTimeout)
	defer deadline.Stop()
	for {
		waiting := false
		for stream, leader := range s.leaders() {
			if leader == s.nats.Load().Name() {
				_ = s.nats.Load().JetStreamStepdownStream(server.DEFAULT_GLOBAL_ACCOUNT, stream) // else it has by itself
			}
			waiting = waiting || leader == s.nats.Load().Name() || leader == ""
		}
		if !waiting || s.peers() == 0 {
			return
		}
		select {
		case <-deadline.C:
			return
		case <-time.After(handOverInterval):
		}
	}
}

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
