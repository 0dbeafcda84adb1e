package members

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"freshet/internal/members/bundle"
)

const (
	protocolLane = "http/1.1"
	// laneConnections is how many requests a lane takes at a time. Each has a
	// connection, so those that wait for messages for long must not become many.
	laneConnections = 64
	// laneIdle is less than any server waits for the next request on a connection, or
	// for the first one: a request never meets a connection that is being closed for
	// having been idle.
	laneIdle = 5 * time.Second
	// laneRest is how long a lane is not used after a connection could not be made.
	laneRest = 10 * time.Second
)

// lane sends a member small requests over HTTP/1.1, each with a connection for itself
// while it lasts. That takes half of the processor time of a stream of HTTP/2. What
// there is no room for goes over HTTP/2, and so does what finds no connection: a member
// of an earlier version speaks nothing else.
//
// HTTP/2 notices by pings that the other side has gone silent. A lane asks for
// something over HTTP/2 every now and then while it has connections, and closes them
// all when there is no answer.
type lane struct {
	transport *http.Transport
	other     *http.Client // over HTTP/2
	url       string
	tls       *tls.Config
	room      chan struct{} // holds one for each request
	pingAfter time.Duration

	ctx    context.Context // ends with close
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows; a leaf
	open    map[*laneConn]struct{}
	watched bool
	rests   time.Time // until when it is not used
}

func newLane(credentials *bundle.Credentials, member, address string, other *http.Client) *lane {
	l := &lane{
		other: other, url: "https://" + address + "/", tls: credentials.Client(member, protocolLane),
		room: make(chan struct{}, laneConnections), pingAfter: pingAfter, open: map[*laneConn]struct{}{},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.transport = &http.Transport{
		DialTLSContext: l.dial, DisableCompression: true,
		IdleConnTimeout: laneIdle, MaxIdleConnsPerHost: laneConnections, MaxIdleConns: laneConnections,
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		l.tls.ServerName = host
	}
	return l
}

// errEarlier says that a member does not speak what lanes do.
var errEarlier = errors.New("member is of a version that speaks HTTP/2 alone")

// unconnected says that a request was not sent, since there was no connection.
type unconnected struct{ error }

func (u unconnected) Unwrap() error { return u.error }

// RoundTrip implements http.RoundTripper for requests whose body can be had again
// (GetBody), or that have none.
func (l *lane) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.enter() {
		return l.other.Transport.RoundTrip(r)
	}
	answer, err := l.transport.RoundTrip(r)
	if err == nil {
		answer.Body = &laneBody{ReadCloser: answer.Body, leave: l.leave}
		return answer, nil
	}
	l.leave()
	if none := (unconnected{}); !errors.As(err, &none) || r.Context().Err() != nil {
		return nil, err
	}
	l.mu.Lock()
	l.rests = time.Now().Add(laneRest)
	l.mu.Unlock()
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = body
	}
	return l.other.Transport.RoundTrip(r)
}

// enter says whether there is room for a request; whoever got it calls leave.
func (l *lane) enter() bool {
	l.mu.Lock()
	rests := !l.rests.IsZero() && time.Now().Before(l.rests)
	l.mu.Unlock()
	if rests {
		return false
	}
	select {
	case l.room <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *lane) leave() { <-l.room }

// laneBody leaves the lane when the answer has been read.
type laneBody struct {
	io.ReadCloser
	once  sync.Once
	leave func()
}

func (b *laneBody) Close() error {
	defer b.once.Do(b.leave)
	return b.ReadCloser.Close()
}

// laneConn is a connection that the lane knows while it is open.
type laneConn struct {
	net.Conn
	lane *lane
}

func (c *laneConn) Close() error {
	c.lane.mu.Lock()
	delete(c.lane.open, c)
	c.lane.mu.Unlock()
	return c.Conn.Close()
}

func (l *lane) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, unconnected{err}
	}
	conn := &laneConn{Conn: raw, lane: l}
	secured := tls.Client(conn, l.tls)
	err = secured.HandshakeContext(ctx)
	if err == nil && secured.ConnectionState().NegotiatedProtocol != protocolLane {
		err = errEarlier
	}
	if err != nil {
		_ = raw.Close() // what was wrong is in err
		return nil, unconnected{err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[conn] = struct{}{}
	if !l.watched {
		l.watched = true
		go l.watch()
	}
	return secured, nil
}

// watch runs while there are connections, and closes them when the member is silent.
func (l *lane) watch() {
	ticker := time.NewTicker(l.pingAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-l.ctx.Done():
		}
		l.mu.Lock()
		if len(l.open) == 0 || l.ctx.Err() != nil {
			l.watched = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if !l.answers() {
			l.cut()
		}
	}
}

// answers says whether the member answers anything at all.
func (l *lane) answers() bool {
	ctx, cancel := context.WithTimeout(l.ctx, pingTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, l.url, http.NoBody)
	if err != nil {
		return false
	}
	answer, err := l.other.Do(request)
	if err != nil {
		return l.ctx.Err() != nil // nobody asks any more
	}
	_ = answer.Body.Close() // it has none
	return true
}

// cut closes all connections: whoever waits for an answer on one is told.
func (l *lane) cut() {
	l.mu.Lock()
	var open []*laneConn
	for conn := range l.open {
		open = append(open, conn)
	}
	l.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close() // there is nothing to be saved
	}
}

// close ends connections that nobody uses, and the watch over the others.
func (l *lane) close() {
	l.cancel()
	l.transport.CloseIdleConnections()
}
