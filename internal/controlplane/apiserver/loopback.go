package apiserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/rest"

	"freshet/internal/base/pipe"
)

// loopback is the service's connection to its own API: HTTP over in-memory pipes, so that it works
// before any listener is open and after all are closed.
type loopback struct {
	*pipe.Listener
	server *http.Server
	token  string
}

// loopbackHost stands for the API in the requests of the service; it is never resolved.
const loopbackHost = "freshet.internal"

var errLoopbackClosed = errors.New("resource API is closed")

func newLoopback() *loopback {
	return &loopback{Listener: pipe.New(loopbackHost), token: uuid.NewString() + uuid.NewString()}
}

// config returns the configuration of the service's own clients: no rate limit, protobuf, and no
// compression, which would compress each event of a watch separately for in-memory transport.
func (l *loopback) config() *rest.Config {
	return &rest.Config{
		Host:        "http://" + loopbackHost,
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
	conn, err := l.Dial(ctx)
	if errors.Is(err, net.ErrClosed) {
		return nil, errLoopbackClosed
	}
	return conn, err
}

func (l *loopback) shutdown() {
	_ = l.Close()
	if l.server != nil {
		_ = l.server.Close() // the connections are in-memory pipes; nothing is lost
	}
}
