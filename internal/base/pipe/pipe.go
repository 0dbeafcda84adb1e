// Package pipe is a network listener inside the process: a client and a server of this process
// connect over net.Pipe, without a socket, path or port, so that no other process can connect. The
// embedded etcd and the service's own client of the resource API use it.
package pipe

import (
	"context"
	"net"
	"sync"
)

// Listener is a net.Listener whose connections come from Dial.
type Listener struct {
	host   string
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*Listener)(nil)

// New creates a listener with this address, which is never resolved.
func New(host string) *Listener {
	return &Listener{host: host, accept: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the goroutine that calls Accept. It returns net.ErrClosed after Close.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.accept <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accept:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return address(l.host) }

type address string

func (address) Network() string  { return "pipe" }
func (a address) String() string { return string(a) }
