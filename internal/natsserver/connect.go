package natsserver

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// InProcessConn implements nats.InProcessConnProvider.
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.InProcessConn() }

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

// Ready waits until streams can be written: JetStream runs, and with peers there
// is a leader that a majority follows.
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
	for {
		try, cancel := context.WithTimeout(ctx, time.Second)
		_, err := js.AccountInfo(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(readyInterval):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrNotReady, err)
		}
	}
}

// Health returns nil while streams can be served from here: it does not ask the
// other servers.
func (s *Server) Health() error {
	switch {
	case !s.nats.Running() || !s.nats.JetStreamEnabled():
		return fmt.Errorf("%w: the embedded server in %s has stopped its streams, see its lines in the log", ErrNotReady, s.dir)
	case !s.nats.JetStreamIsCurrent():
		return ErrNotReady
	}
	return nil
}
