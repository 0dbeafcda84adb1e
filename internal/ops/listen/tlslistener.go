package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// tlsListener does the TLS handshakes and separates connections of HTTP/1.1 from those of
// HTTP/2. net/http supports HTTP/2 only on a bare *tls.Conn, while HTTP/1.1 connections are
// wrapped for refusals. Handshakes run concurrently; the inner listener limits the number of
// connections.
type tlsListener struct {
	inner            net.Listener
	config           *tls.Config
	handshakeTimeout time.Duration // timeout of a handshake
	once             sync.Once
	closed           chan struct{}
	err              error // of the inner listener; set before broken is closed
	broken           chan struct{}

	handshaking atomic.Int64 // number of connections in their handshake

	http1 *protocolListener
	http2 *protocolListener
}

func listenTLS(inner net.Listener, config *tls.Config, limit time.Duration) *tlsListener {
	l := &tlsListener{
		inner: inner, config: config, handshakeTimeout: limit, closed: make(chan struct{}),
		broken: make(chan struct{}),
	}
	l.http1 = &protocolListener{of: l, conns: make(chan net.Conn), closed: make(chan struct{})}
	l.http2 = &protocolListener{of: l, conns: make(chan net.Conn), closed: make(chan struct{})}
	go l.run()
	return l
}

// run accepts connections until the listener is closed. It retries with backoff after a
// temporary error, such as too many open files, as net/http does.
func (l *tlsListener) run() {
	delay := time.Duration(0)
	for {
		c, err := l.inner.Accept()
		if err == nil {
			delay = 0
			l.handshaking.Add(1)
			go func() {
				defer l.handshaking.Add(-1)
				l.handshake(c)
			}()
			continue
		}
		select {
		case <-l.closed:
			return
		default:
		}
		var passing net.Error
		if !errors.As(err, &passing) || !passing.Temporary() { //nolint:staticcheck // net/http uses it, too
			l.err = err
			close(l.broken)
			return
		}
		delay = min(max(5*time.Millisecond, 2*delay), time.Second)
		select {
		case <-time.After(delay):
		case <-l.closed:
			return
		}
	}
}

func (l *tlsListener) handshake(c net.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), l.handshakeTimeout)
	defer cancel()
	secured := tls.Server(c, l.config)
	if err := secured.HandshakeContext(ctx); err != nil {
		if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil &&
			looksLikeHTTP(plain.RecordHeader) {
			// helps the user; an error does not matter
			_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis is the HTTPS port: use https://\n")
		}
		_ = c.Close() // the connection is unusable
		return
	}
	to := l.http1
	if secured.ConnectionState().NegotiatedProtocol == "h2" {
		to = l.http2
	}
	select {
	case to.conns <- secured:
	case <-to.closed:
		_ = secured.Close() // the listener is closed
	}
}

// looksLikeHTTP reports whether the first bytes of a connection are an HTTP method.
func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		return true
	}
	return false
}

// protocolListener returns the connections of one protocol. Closing one stops new
// connections of both.
type protocolListener struct {
	of     *tlsListener
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (p *protocolListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.of.broken:
		return nil, p.of.err
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *protocolListener) Close() (err error) {
	p.once.Do(func() { close(p.closed) })
	p.of.once.Do(func() {
		close(p.of.closed)
		err = p.of.inner.Close()
	})
	return err
}

// Addr implements net.Listener.
func (p *protocolListener) Addr() net.Addr { return p.of.inner.Addr() }
