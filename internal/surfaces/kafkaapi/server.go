package kafkaapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"freshet/internal/base/fairshare"
	"freshet/internal/base/retry"
)

// Server serves the Kafka protocol on any number of listeners.
type Server struct {
	opts          Options
	apis          map[int16]api
	room          *room               // memory of requests and responses
	preAuthMemory *semaphore.Weighted // the same for clients that have not authenticated
	// fetchLimiter bounds how many Fetches read at a time, describeLimiter how many large responses of other APIs are
	// built at a time. Their holders do not wait for room or for clients.
	fetchLimiter, describeLimiter *fairshare.Semaphore
	lastConnection                atomic.Uint64 // number of the last accepted connection

	ctx    context.Context // context of all connections
	cancel context.CancelFunc
	// draining ends when the server shuts down. Waiting requests are then completed.
	draining context.Context
	drain    context.CancelFunc
	wg       sync.WaitGroup

	requests                                     map[int16]*requests // by API
	authFailures, throttled, rejectedConnections atomic.Int64

	mu               sync.Mutex
	closed           bool
	listenerNames    map[net.Listener]string
	listeners        map[net.Listener]int // number of connections by listener
	conns            map[*conn]struct{}
	addresses        map[string]int // connections by the client's address
	unauthenticated  unauthenticatedConns
	lastRejectionLog time.Time // time of the last log line of logRejectedLocked

	fetchSessions int // number of fetch sessions of all connections
	sessionBytes  int // memory of these sessions
	shareSessions shareSessions
}

// NewServer returns a server without listeners.
func NewServer(opts Options) *Server {
	opts.complete()
	s := &Server{
		opts: opts, apis: allAPIs(), room: newRoom(opts.Limits.Memory),
		preAuthMemory: semaphore.NewWeighted(memoryBeforeAuth),
		fetchLimiter:  newLimiter(maxConcurrentFetches), describeLimiter: newLimiter(maxConcurrentDescribes),
		requests: make(map[int16]*requests), listenerNames: make(map[net.Listener]string),
		listeners: make(map[net.Listener]int), conns: make(map[*conn]struct{}), addresses: make(map[string]int),
		unauthenticated: newUnauthenticatedConns(opts.Limits.maxUnauthenticated()),
	}
	s.shareSessions = newShareSessions()
	for key := range s.apis {
		s.requests[key] = &requests{}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.draining, s.drain = context.WithCancel(s.ctx)
	return s
}

// ErrServerClosed is returned by Serve after Shutdown.
var ErrServerClosed = errors.New("server of the Kafka protocol is closed")

// Listener is a listener of a server, with its TLS configuration and its advertised address.
type Listener struct {
	net.Listener
	Name       string      // used in statistics
	TLS        *tls.Config // nil for plain text
	Advertised string      // host[:port] that clients connect to; "" for the address they connected to
	// Anonymous is the account of clients on the loopback interface that send no credentials; nil
	// means that every client must authenticate.
	Anonymous *AnonymousAccount
}

// Serve accepts connections until the server is shut down.
func (s *Server) Serve(l Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.listeners[l.Listener], s.listenerNames[l.Listener] = 0, l.Name
	s.mu.Unlock()
	if l.Anonymous != nil {
		l.Anonymous.warn(s.opts.Logger, l.Addr())
	}
	for failures := 0; ; {
		socket, err := l.Accept()
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return ErrServerClosed
			}
			// Most likely the process is out of file descriptors; connections that end will free
			// some.
			failures++
			if failures == 1 {
				s.opts.Logger.Warn("accepting a Kafka connection failed; retrying", slog.Any("error", err))
			}
			_ = retry.Sleep(s.ctx, min(time.Duration(failures)*10*time.Millisecond, time.Second))
			continue
		}
		failures = 0
		c := newConn(s, socket, l)
		if !s.addConnection(c) {
			_ = socket.Close()
			continue
		}
		s.wg.Go(func() {
			defer s.removeConnection(c)
			c.serve()
		})
	}
}

// addConnection adds a connection unless a limit is reached.
func (s *Server) addConnection(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false
	case s.listeners[c.listener.Listener] >= s.opts.Limits.Connections:
		s.logRejectedLocked("connections of the listener, see stream.connections", c.address)
		return false
	case s.addresses[c.address] >= maxConnectionsByAddress:
		s.logRejectedLocked("connections of one address", c.address)
		return false
	}
	gone, crowded := s.unauthenticated.addLocked(c)
	if gone != nil {
		_ = gone.accepted.Close() // its own goroutine cleans up
		s.logRejectedLocked("connections that do not authenticate", gone.address)
	}
	if crowded {
		time.AfterFunc(authGracePeriod, func() { s.closeSurplus(c.address) })
	}
	s.listeners[c.listener.Listener]++
	s.addresses[c.address]++
	s.conns[c] = struct{}{}
	return true
}

// logRejectedLocked logs that a connection was rejected or closed because of a limit. The client
// only sees a lost connection. It logs at most once in ten seconds.
func (s *Server) logRejectedLocked(many, address string) {
	s.rejectedConnections.Add(1)
	if now := time.Now(); now.Sub(s.lastRejectionLog) > 10*time.Second {
		s.lastRejectionLog = now
		s.opts.Logger.Warn("rejecting a Kafka connection: too many "+many, slog.String("address", address))
	}
}

func (s *Server) removeConnection(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.unauthenticated.removeLocked(c)
	s.listeners[c.listener.Listener]--
	if s.addresses[c.address]--; s.addresses[c.address] == 0 {
		delete(s.addresses, c.address)
	}
}

// Shutdown stops accepting connections and requests, completes the accepted requests, and returns
// when all connections have ended. When ctx ends first, it closes the connections.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	s.mu.Lock()
	s.closed = true
	for l := range s.listeners {
		_ = l.Close()
	}
	for c := range s.conns {
		c.drain()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.cancel()
		return nil
	case <-ctx.Done():
	}
	s.cancel()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.accepted.Close()
	}
	s.mu.Unlock()
	<-done
	return ctx.Err()
}
