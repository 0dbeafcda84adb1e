package apiserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/rest"
)

// loopback is the service's connection to its own API: HTTP over in-memory pipes, so that it works
// before any listener is open and after all are closed.
type loopback struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	server *http.Server
	token  string
}

var errLoopbackClosed = errors.New("resource API is closed")

func newLoopback() *loopback {
	return &loopback{
		conns:  make(chan net.Conn),
		closed: make(chan struct{}),
		token:  uuid.NewString() + uuid.NewString(),
	}
}

// config returns the configuration of the service's own clients: no rate limit, protobuf, and no
// compression, which would compress each event of a watch separately for in-memory transport.
func (l *loopback) config() *rest.Config {
	return &rest.Config{
		Host:        "http://freshet.internal",
		BearerToken: l.token,
		Dial:        l.dial,
		QPS:         -1,
		Burst:       -1,

		DisableCompression: true,
		ContentConfig: rest.ContentConfig{
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType:        "application/vnd.kubernetes.protobuf",
		},
	}
}

func (l *loopback) serve(handler http.Handler) {
	l.server = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = l.server.Serve(l) }() // always ends with ErrServerClosed
}

func (l *loopback) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errLoopbackClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *loopback) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *loopback) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *loopback) Addr() net.Addr { return pipeAddr{} }

func (l *loopback) shutdown() {
	_ = l.Close()
	if l.server != nil {
		_ = l.server.Close() // the connections are in-memory pipes; nothing is lost
	}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "freshet.internal" }
