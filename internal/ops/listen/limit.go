package listen

import (
	"errors"
	"net"
	"sync"
)

// Limit is a semaphore for open connections. Several listeners can share it.
type Limit chan struct{}

// NewLimit returns a limit of n connections.
func NewLimit(n int) Limit { return make(Limit, n) }

// Apply returns a listener that accepts connections only below the limit.
func (c Limit) Apply(l net.Listener) net.Listener {
	return &limitedListener{Listener: l, limit: c, closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	limit  Limit
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.limit <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	release := sync.OnceFunc(func() { <-l.limit })
	conn, err := l.Listener.Accept()
	if err != nil {
		release()
		return nil, err
	}
	return &limitedConn{Conn: conn, release: release}, nil
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite closes one direction. net/http calls it after it has rejected a request whose
// body is still arriving, so that the client can read the response.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
