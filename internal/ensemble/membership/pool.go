package membership

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"freshet/internal/base/retry"
	"freshet/internal/ensemble/bundle"
)

const (
	protocolPooled = "http/1.1"
	// poolConnections bounds the concurrent requests of a pool. Each has a connection of its
	// own, so long polls must not use many.
	poolConnections = 64
	// poolIdleTimeout is shorter than any server's idle timeout, also before the first request of a
	// connection. So a request never uses a connection that the server is just closing.
	poolIdleTimeout = 5 * time.Second
	// poolBackoff is how long a pool is not used after a failed dial.
	poolBackoff = 10 * time.Second
)

// pool sends a member small requests over HTTP/1.1, each on a connection of its own, which
// takes less processor time than a stream of HTTP/2. A request uses HTTP/2 instead when the
// pool is full or the dial fails, because a member of an earlier version supports only
// HTTP/2.
//
// HTTP/2 detects a dead peer by pings, HTTP/1.1 does not. So while a pool has connections,
// it regularly sends a request over HTTP/2, and closes all connections when there is no
// response.
type pool struct {
	transport    *http.Transport
	http2        *http.Client // uses HTTP/2
	url          string
	tls          *tls.Config
	inFlight     chan struct{} // semaphore: holds an element for each request in flight
	pingInterval time.Duration
	dialTimeout  time.Duration

	ctx    context.Context // ends with close
	cancel context.CancelFunc

	mu            sync.Mutex // protects the following fields; a leaf lock
	open          map[*pooledConn]struct{}
	watching      bool
	disabledUntil time.Time // the pool is not used until then
}

func newPool(credentials *bundle.Credentials, member, address string, other *http.Client) *pool {
	p := &pool{
		http2: other, url: "https://" + address + "/", tls: credentials.ClientTLS(member, protocolPooled),
		inFlight: make(chan struct{}, poolConnections), pingInterval: pingInterval, dialTimeout: dialTimeout,
		open: map[*pooledConn]struct{}{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.transport = &http.Transport{
		DialTLSContext: p.dial, DisableCompression: true,
		IdleConnTimeout: poolIdleTimeout, MaxIdleConnsPerHost: poolConnections, MaxIdleConns: poolConnections,
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		p.tls.ServerName = host
	}
	return p
}

// errHTTP2Only is returned when a member does not support the pool's protocol.
var errHTTP2Only = errors.New("member runs a version that supports only HTTP/2")

// dialError is the error of a request that was not sent, because the dial failed.
type dialError struct{ error }

func (u dialError) Unwrap() error { return u.error }

// RoundTrip implements http.RoundTripper for requests without a body or with one that can
// be read again (GetBody).
func (p *pool) RoundTrip(r *http.Request) (*http.Response, error) {
	if !p.acquire() {
		return p.http2.Transport.RoundTrip(r)
	}
	response, err := p.transport.RoundTrip(r)
	if err == nil {
		response.Body = &pooledBody{ReadCloser: response.Body, release: p.release}
		return response, nil
	}
	p.release()
	if none := (dialError{}); !errors.As(err, &none) || r.Context().Err() != nil {
		return nil, err
	}
	p.mu.Lock()
	p.disabledUntil = time.Now().Add(poolBackoff)
	p.mu.Unlock()
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = body
	}
	return p.http2.Transport.RoundTrip(r)
}

// acquire acquires a slot for a request and reports whether it did; then the caller must call
// release.
func (p *pool) acquire() bool {
	p.mu.Lock()
	rests := !p.disabledUntil.IsZero() && time.Now().Before(p.disabledUntil)
	p.mu.Unlock()
	if rests {
		return false
	}
	select {
	case p.inFlight <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p *pool) release() { <-p.inFlight }

// pooledBody releases the pool's slot when the response is closed.
type pooledBody struct {
	io.ReadCloser
	once    sync.Once
	release func()
}

func (b *pooledBody) Close() error {
	defer b.once.Do(b.release)
	return b.ReadCloser.Close()
}

// pooledConn is a connection that is listed in its pool while it is open.
type pooledConn struct {
	net.Conn
	pool *pool
}

func (c *pooledConn) Close() error {
	c.pool.mu.Lock()
	delete(c.pool.open, c)
	c.pool.mu.Unlock()
	return c.Conn.Close()
}

func (p *pool) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.dialTimeout)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, dialError{err}
	}
	conn := &pooledConn{Conn: raw, pool: p}
	secured := tls.Client(conn, p.tls)
	err = secured.HandshakeContext(ctx)
	if err == nil && secured.ConnectionState().NegotiatedProtocol != protocolPooled {
		err = errHTTP2Only
	}
	if err != nil {
		_ = raw.Close() // err has the cause
		return nil, dialError{err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[conn] = struct{}{}
	if !p.watching {
		p.watching = true
		go p.watch()
	}
	return secured, nil
}

// watch runs while the pool has connections, and closes them when the member does not
// respond.
func (p *pool) watch() {
	for {
		_ = retry.Sleep(p.ctx, p.pingInterval)
		p.mu.Lock()
		if len(p.open) == 0 || p.ctx.Err() != nil {
			p.watching = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if !p.ping() {
			p.closeConnections()
		}
	}
}

// ping reports whether the member responds to a request over HTTP/2.
func (p *pool) ping() bool {
	ctx, cancel := context.WithTimeout(p.ctx, pingTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, p.url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := p.http2.Do(request)
	if err != nil {
		return p.ctx.Err() != nil // the pool is closed
	}
	_ = response.Body.Close() // a HEAD response has no body
	return true
}

// closeConnections closes all connections, so that requests in flight fail.
func (p *pool) closeConnections() {
	p.mu.Lock()
	var open []*pooledConn
	for conn := range p.open {
		open = append(open, conn)
	}
	p.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close() // the connection is dead
	}
}

// close closes idle connections and stops watch.
func (p *pool) close() {
	p.cancel()
	p.transport.CloseIdleConnections()
}
