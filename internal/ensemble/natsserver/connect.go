package natsserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/retry"
)

// InProcessConn implements nats.InProcessConnProvider.
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.Load().InProcessConn() }

// Connect opens a connection inside the process. Close of the server closes it.
func (s *Server) Connect(name string) (*nats.Conn, error) {
	conn, err := connect(name, nats.InProcessServer(s))
	if err != nil {
		return nil, fmt.Errorf("connecting to the embedded replicated log: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, conn)
	return conn, nil
}

// connect opens a connection that reconnects forever and never buffers a publish while it
// is disconnected. A caller without an acknowledgement reads the stream to learn the outcome.
func connect(name string, opts ...nats.Option) (*nats.Conn, error) {
	opts = append([]nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(50*time.Millisecond, 100*time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2),
	}, opts...)
	return nats.Connect("", opts...)
}

// Ready waits until streams can be written and this server takes part: JetStream runs, with
// peers a majority follows a leader, and this server's streams have caught up or
// catchUpTimeout has passed. In a rolling restart the next server can be restarted then.
func (s *Server) Ready(ctx context.Context) error {
	conn, err := connect("ready", nats.InProcessServer(s))
	if err != nil {
		return fmt.Errorf("connecting to the embedded replicated log: %w", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return fmt.Errorf("connecting to the embedded replicated log: %w", err)
	}
	var majority time.Time // when the server first had one
	for {
		err := s.checkLeader()
		if err == nil {
			try, cancel := context.WithTimeout(ctx, time.Second)
			_, err = js.AccountInfo(try)
			cancel()
		}
		if err == nil {
			err = s.checkMajority()
		}
		if err == nil {
			if majority.IsZero() {
				majority = time.Now()
			}
			if err = s.checkCaughtUp(); err == nil {
				return nil
			}
			if time.Since(majority) > catchUpTimeout {
				s.log.Warnf("a stream has not caught up within %s; the server becomes ready without it: %v",
					catchUpTimeout, err)
				return nil
			}
		}
		if retry.Sleep(ctx, readyInterval) != nil {
			if errors.Is(err, ErrNotReady) {
				return err
			}
			return fmt.Errorf("%w: %w", ErrNotReady, err)
		}
	}
}

// checkLeader returns nil when this server knows a leader or needs none. A request that is sent
// while there is no leader gets no response, so Ready would lose the second of its timeout.
func (s *Server) checkLeader() error {
	info, err := s.nats.Load().Jsz(&server.JSzOptions{})
	if err == nil && info.Meta != nil && info.Meta.Leader == "" {
		return ErrNotReady
	}
	return nil
}

// checkMajority returns nil while this server and the peers that it has routes to are more than
// half of all servers. Responses prove less, because a leader that is cut off continues to
// respond for up to twenty seconds.
func (s *Server) checkMajority() error {
	if all := len(s.opts.Routes) + 1; all > 1 && 2*(s.peers()+1) <= all {
		return ErrNotReady
	}
	return nil
}

// checkCaughtUp returns nil when this server's streams have caught up.
func (s *Server) checkCaughtUp() error {
	if status := s.nats.Load().Healthz(&server.HealthzOptions{}); status.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", status.Status, status.Error)
	}
	return nil
}

// Health returns nil while this server can serve streams. It does not call the other
// servers.
func (s *Server) Health() error {
	if why := s.waiting.Load(); why != nil {
		return fmt.Errorf("%w: %s", ErrNotReady, *why)
	}
	switch {
	case !s.nats.Load().Running() || !s.nats.Load().JetStreamEnabled():
		return fmt.Errorf("%w: embedded NATS server in %s has stopped its streams; see the server log",
			ErrNotReady, s.dir)
	case !s.nats.Load().JetStreamIsCurrent():
		return ErrNotReady
	}
	return s.checkMajority()
}
