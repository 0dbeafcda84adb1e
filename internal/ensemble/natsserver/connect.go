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
)

// InProcessConn implements nats.InProcessConnProvider.
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.Load().InProcessConn() }

// Connect makes a connection inside the process. It ends with the server.
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

// connect makes a connection that never gives up and never keeps a publish for
// later: who gets an error, or none in time, finds out by reading what became of it.
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

// Ready waits until streams can be written and this server counts: JetStream runs,
// with peers there is a leader that a majority follows, and what this server keeps
// of each stream has caught up, or had some time to. In a rolling restart it is the
// moment to go on with the next server.
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
	var majority time.Time // when there was one at first
	for {
		err := s.led()
		if err == nil {
			try, cancel := context.WithTimeout(ctx, time.Second)
			_, err = js.AccountInfo(try)
			cancel()
		}
		if err == nil {
			err = s.majority()
		}
		if err == nil {
			if majority.IsZero() {
				majority = time.Now()
			}
			if err = s.current(); err == nil {
				return nil
			}
			if time.Since(majority) > catchUpTimeout {
				s.log.Warnf("A stream has not caught up within %s; the server goes on with that: %v",
					catchUpTimeout, err)
				return nil
			}
		}
		select {
		case <-time.After(readyInterval):
		case <-ctx.Done():
			if errors.Is(err, ErrNotReady) {
				return err
			}
			return fmt.Errorf("%w: %w", ErrNotReady, err)
		}
	}
}

// led returns nil when this server knows a leader, or needs none. Without one a request
// is never answered: whoever makes it too early learns a second late that there is one.
func (s *Server) led() error {
	info, err := s.nats.Load().Jsz(&server.JSzOptions{})
	if err == nil && info.Meta != nil && info.Meta.Leader == "" {
		return ErrNotReady
	}
	return nil
}

// majority returns nil while this server and those it has routes to are more than half
// of all. A leader that is left alone goes on answering for up to twenty seconds, so
// being answered says less.
func (s *Server) majority() error {
	if all := len(s.opts.Routes) + 1; all > 1 && 2*(s.peers()+1) <= all {
		return ErrNotReady
	}
	return nil
}

// current returns nil when this server's streams have caught up.
func (s *Server) current() error {
	if status := s.nats.Load().Healthz(&server.HealthzOptions{}); status.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", status.Status, status.Error)
	}
	return nil
}

// Health returns nil while streams can be served from here: it does not ask the
// other servers.
func (s *Server) Health() error {
	switch {
	case !s.nats.Load().Running() || !s.nats.Load().JetStreamEnabled():
		return fmt.Errorf("%w: the embedded server in %s has stopped its streams, see its lines in the log",
			ErrNotReady, s.dir)
	case !s.nats.Load().JetStreamIsCurrent():
		return ErrNotReady
	}
	return s.majority()
}
