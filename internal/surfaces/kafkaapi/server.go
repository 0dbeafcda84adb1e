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
)

// Server serves the stream protocol on any number of listeners.
type Server struct {
	opts Options
	apis map[int16]api
	// frames is room for requests, decoded for what they are decoded into, answers
	// for what is sent, beforeAuth for requests of clients that have not
	// authenticated. Who has room in one of them waits for those behind it only.
	frames, decoded, answers, beforeAuth *semaphore.Weighted
	// reading bounds how many answers are made at once of which nobody knows yet
	// how large they will be.
	reading *semaphore.Weighted
	making  *semaphore.Weighted // the same for descriptions

	ctx    context.Context // the life of all connections
	cancel context.CancelFunc
	// draining ends when the server shuts down: who waits is answered then.
	draining context.Context
	drain    context.CancelFunc
	wg       sync.WaitGroup

	requests                    map[int16]*requests // by API
	refused, throttled, crowded atomic.Int64

	mu        sync.Mutex
	closed    bool
	names     map[net.Listener]string
	listeners map[net.Listener]int // and how many connections it has
	conns     map[*conn]struct{}
	addresses map[string]int // connections by the client's address
	strangers strangers
	told      time.Time // when the log last had a line of turnedAwayLocked

	fetchSessions int // that connections have
	sessionBytes  int // that they take
}

// NewServer makes a server that listens nowhere yet.
func NewServer(opts Options) *Server {
	opts.complete()
	s := &Server{
		opts: opts, apis: allAPIs(), reading: semaphore.NewWeighted(fetchesAtOnce),
		frames: semaphore.NewWeighted(opts.Limits.Memory / 2), answers: semaphore.NewWeighted(opts.Limits.Memory / 2),
		decoded: semaphore.NewWeighted(opts.Limits.Memory / 4), beforeAuth: semaphore.NewWeighted(memoryBeforeAuth),
		making:   semaphore.NewWeighted(answersAtOnce),
		requests: make(map[int16]*requests), names: make(map[net.Listener]string),
		listeners: make(map[net.Listener]int), conns: make(map[*conn]struct{}), addresses: make(map[string]int),
		strangers: newStrangers(opts.Limits.strangers()),
	}
	for key := range s.apis {
		s.requests[key] = &requests{}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.draining, s.drain = context.WithCancel(s.ctx)
	return s
}

// ErrServerClosed is what Serve returns after Shutdown.
var ErrServerClosed = errors.New("stream server is closed")

// A Listener is where a server takes connections, and what it tells clients of
// itself there.
type Listener struct {
	net.Listener
	Name       string      // in statistics
	TLS        *tls.Config // nil for plain text
	Advertised string      // host[:port] that clients are sent to; "" for the address they came to
	// Anonymous returns a token for clients of this machine that bring none; nil:
	// everybody authenticates.
	Anonymous func(*Cluster) (string, error)
}

// Serve takes connections until the server is shut down.
func (s *Server) Serve(l Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.listeners[l.Listener], s.names[l.Listener] = 0, l.Name
	s.mu.Unlock()
	for failures := 0; ; {
		socket, err := l.Accept()
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return ErrServerClosed
			}
			// Out of file handles, most likely: connections that end help.
			failures++
			if failures == 1 {
				s.opts.Logger.Warn("a stream connection could not be accepted", slog.String("error", err.Error()))
			}
			select {
			case <-time.After(min(time.Duration(failures)*10*time.Millisecond, time.Second)):
			case <-s.ctx.Done():
			}
			continue
		}
		failures = 0
		c := newConn(s, socket, l)
		if !s.admit(c) {
			_ = socket.Close()
			continue
		}
		s.wg.Go(func() {
			defer s.forget(c)
			c.serve()
		})
	}
}

// admit counts a connection in, unless there are too many.
func (s *Server) admit(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false
	case s.listeners[c.listener.Listener] >= s.opts.Limits.Connections:
		s.turnedAwayLocked("connections of the listener, see stream.connections", c.address)
		return false
	case s.addresses[c.address] >= connectionsByAddress:
		s.turnedAwayLocked("connections of one address", c.address)
		return false
	}
	gone, crowded := s.strangers.addLocked(c)
	if gone != nil {
		_ = gone.accepted.Close() // its own goroutine does the rest
		s.turnedAwayLocked("connections that do not authenticate", gone.address)
	}
	if crowded {
		time.AfterFunc(settleTime, func() { s.thin(c.address) })
	}
	s.listeners[c.listener.Listener]++
	s.addresses[c.address]++
	s.conns[c] = struct{}{}
	return true
}

// turnedAwayLocked says that a connection was refused or ended for want of room, which
// looks to its client like any other loss of a connection. One line in ten seconds.
func (s *Server) turnedAwayLocked(many, address string) {
	s.crowded.Add(1)
	if now := time.Now(); now.Sub(s.told) > 10*time.Second {
		s.told = now
		s.opts.Logger.Warn("a stream connection was turned away: too many "+many, slog.String("address", address))
	}
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.strangers.removeLocked(c)
	s.listeners[c.listener.Listener]--
	if s.addresses[c.address]--; s.addresses[c.address] == 0 {
		delete(s.addresses, c.address)
	}
}

// Shutdown stops taking connections and requests, answers those that were taken,
// and returns when all connections have ended. When ctx ends first they are cut.
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
