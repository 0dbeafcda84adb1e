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

	"freshet/internal/ensemble/bundle"
)

const (
	protocolPooled = "http/1.1"
	// poolConnections is how many requests a pool takes at a time. Each has a
	// connection, so those that wait for messages for long must not become many.
	poolConnections = 64
	// poolIdle is less than any server waits for the next request on a connection, or
	// for the first one: a request never meets a connection that is being closed for
	// having been idle.
	poolIdle = 5 * time.Second
	// poolRest is how long a pool is not used after a connection could not be made.
	poolRest = 10 * time.Second
)

// pool sends a member small requests over HTTP/1.1, each with a connection for itself
// while it lasts, which takes less processor time than a stream of HTTP/2. What
// there is no room for goes over HTTP/2, and so does what finds no connection: a member
// of an earlier version speaks nothing else.
//
// HTTP/2 notices by pings that the other side has gone silent. A pool asks for
// something over HTTP/2 every now and then while it has connections, and closes them
// all when there is no answer.
type pool struct {
	transport *http.Transport
	other     *http.Client // over HTTP/2
	url       string
	tls       *tls.Config
	room      chan struct{} // holds one for each request
	pingAfter time.Duration

	ctx    context.Context // ends with close
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows; a leaf
	open    map[*pooledConn]struct{}
	watched bool
	rests   time.Time // until when it is not used
}

func newPool(credentials *bundle.Credentials, member, address string, other *http.Client) *pool {
	p := &pool{
		other: other, url: "https://" + address + "/", tls: credentials.Client(member, protocolPooled),
		room: make(chan struct{}, poolConnections), pingAfter: pingAfter, open: map[*pooledConn]struct{}{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.transport = &http.Transport{
		DialTLSContext: p.dial, DisableCompression: true,
		IdleConnTimeout: poolIdle, MaxIdleConnsPerHost: poolConnections, MaxIdleConns: poolConnections,
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		p.tls.ServerName = host
	}
	return p
}

// errEarlier says that a member does not speak what pools do.
var errEarlier = errors.New("member is of a version that speaks HTTP/2 alone")

// unconnected says that a request was not sent, since there was no connection.
type unconnected struct{ error }

func (u unconnected) Unwrap() error { return u.error }

// RoundTrip implements http.RoundTripper for requests whose body can be had again
// (GetBody), or that have none.
func (p *pool) RoundTrip(r *http.Request) (*http.Response, error) {
	if !p.enter() {
		return p.other.Transport.RoundTrip(r)
	}
	answer, err := p.transport.RoundTrip(r)
	if err == nil {
		answer.Body = &pooledBody{ReadCloser: answer.Body, leave: p.leave}
		return answer, nil
	}
	p.leave()
	if none := (unconnected{}); !errors.As(err, &none) || r.Context().Err() != nil {
		return nil, err
	}
	p.mu.Lock()
	p.rests = time.Now().Add(poolRest)
	p.mu.Unlock()
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = body
	}
	return p.other.Transport.RoundTrip(r)
}

// enter says whether there is room for a request; whoever got it calls leave.
func (p *pool) enter() bool {
	p.mu.Lock()
	rests := !p.rests.IsZero() && time.Now().Before(p.rests)
	p.mu.Unlock()
	if rests {
		return false
	}
	select {
	case p.room <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p *pool) leave() { <-p.room }

// pooledBody leaves the pool when the answer has been read.
type pooledBody struct {
	io.ReadCloser
	once  sync.Once
	leave func()
}

func (b *pooledBody) Close() error {
	defer b.once.Do(b.leave)
	return b.ReadCloser.Close()
}

// pooledConn is a connection that the pool knows while it is open.
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
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, unconnected{err}
	}
	conn := &pooledConn{Conn: raw, pool: p}
	secured := tls.Client(conn, p.tls)
	err = secured.HandshakeContext(ctx)
	if err == nil && secured.ConnectionState().NegotiatedProtocol != protocolPooled {
		err = errEarlier
	}
	if err != nil {
		_ = raw.Close() // what was wrong is in err
		return nil, unconnected{err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[conn] = struct{}{}
	if !p.watched {
		p.watched = true
		go p.watch()
	}
	return secured, nil
}

// watch runs while there are connections, and closes them when the member is silent.
func (p *pool) watch() {
	ticker := time.NewTicker(p.pingAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-p.ctx.Done():
		}
		p.mu.Lock()
		if len(p.open) == 0 || p.ctx.Err() != nil {
			p.watched = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if !p.answers() {
			p.cut()
		}
	}
}

// answers says whether the member answers anything at all.
func (p *pool) answers() bool {
	ctx, cancel := context.WithTimeout(p.ctx, pingTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, p.url, http.NoBody)
	if err != nil {
		return false
	}
	answer, err := p.other.Do(request)
	if err != nil {
		return p.ctx.Err() != nil // nobody asks any more
	}
	_ = answer.Body.Close() // it has none
	return true
}

// cut closes all connections: whoever waits for an answer on one is told.
func (p *pool) cut() {
	p.mu.Lock()
	var open []*pooledConn
	for conn := range p.open {
		open = append(open, conn)
	}
	p.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close() // there is nothing to be saved
	}
}

// close ends connections that nobody uses, and the watch over the others.
func (p *pool) close() {
	p.cancel()
	p.transport.CloseIdleConnections()
}
