package listen

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A server that stops sends every response (docs/howto/operate.md):
//
//  1. From the start of the shutdown every response closes its connection: with Connection:
//     close over HTTP/1.1, with GOAWAY over HTTP/2. Waiting calls get their responses,
//     watches end, and the server still accepts new connections.
//  2. When every connection of that time is closed, or has been idle for a while, the server
//     makes the kernel drop new connections, and accepts those in the backlog.
//  3. When these are closed or idle, too, the server closes the listeners.

const (
	// idleTimeout is how long a connection must be idle before it can be closed. An active client
	// would have sent a request by then, whose response closes the connection.
	idleTimeout = time.Second
	// firstRequestTimeout is how long a new connection may take to send its first request.
	firstRequestTimeout = 2 * time.Second
	// handshakeTime is how long TCP handshakes that have started may take.
	handshakeTime = 200 * time.Millisecond
	// backlogTimeout is the timeout for accepting the connections in the backlog.
	backlogTimeout = 3 * time.Second
	drainPoll      = 10 * time.Millisecond
)

// connections contains the open connections, and since when each of them is idle.
type connections struct {
	open sync.Map // net.Conn → *connection
}

type connection struct {
	opened time.Time
	used   atomic.Bool  // it has received a request
	idle   atomic.Int64 // idle since this Unix time in nanoseconds; 0 while it is active
}

// track tracks the connections of a server. It calls the previous ConnState hook.
func (c *connections) track(server *http.Server) {
	next := server.ConnState
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		c.update(conn, state)
		if next != nil {
			next(conn, state)
		}
	}
}

func (c *connections) update(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.open.Store(conn, &connection{opened: time.Now()})
	case http.StateActive, http.StateIdle:
		if known, ok := c.open.Load(conn); ok {
			since := int64(0)
			if state == http.StateIdle {
				since = time.Now().UnixNano()
			}
			known.(*connection).used.Store(true)
			known.(*connection).idle.Store(since)
		}
	case http.StateHijacked, http.StateClosed:
		c.open.Delete(conn)
	}
}

// settled reports whether all connections that were open at a time are closed, or have been
// idle or unused for long enough.
func (c *connections) settled(at time.Time) bool {
	settled, now := true, time.Now()
	c.open.Range(func(_, value any) bool {
		known := value.(*connection)
		switch idle := known.idle.Load(); {
		case known.opened.After(at):
		case !known.used.Load():
			settled = now.Sub(known.opened) > firstRequestTimeout
		default:
			settled = idle != 0 && now.Sub(time.Unix(0, idle)) > idleTimeout
		}
		return settled
	})
	return settled
}

// poll polls yes until it returns true or ctx is canceled.
func poll(ctx context.Context, yes func() bool) {
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	for !yes() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Shutdown closes the ports after all responses are sent. The handlers must already close the
// connection of every response.
func (l *Ports) Shutdown(ctx context.Context) error {
	began := time.Now()
	poll(ctx, func() bool { return l.connections.settled(began) })
	l.acceptBacklog(ctx)
	began = time.Now()
	poll(ctx, func() bool { return l.connections.settled(began) })
	problems := make([]error, len(l.servers))
	var ended sync.WaitGroup
	for i, server := range l.servers {
		ended.Go(func() {
			if err := server.Shutdown(ctx); err != nil {
				problems[i] = errors.Join(err, server.Close())
			}
		})
	}
	ended.Wait()
	return errors.Join(problems...)
}

// acceptBacklog drops new connections, and waits until the connections in the backlog are
// accepted.
func (l *Ports) acceptBacklog(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	var waiting []*net.TCPListener
	for _, listener := range l.raw {
		if dropNewConnections(listener) == nil { // fails if the listener is closed, or on other systems than Linux
			waiting = append(waiting, listener)
		}
	}
	if len(waiting) == 0 {
		return
	}
	made := time.Now().Add(handshakeTime)
	poll(ctx, func() bool {
		if time.Now().Before(made) || l.secured != nil && l.secured.handshaking.Load() > 0 {
			return false
		}
		return !slices.ContainsFunc(waiting, func(listener *net.TCPListener) bool {
			n, err := backlog(listener)
			return err == nil && n > 0
		})
	})
}
