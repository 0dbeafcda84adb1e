package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A server that stops loses no answer (docs/howto/operate.md):
//
//  1. From the first moment on every response ends its connection: with
//     Connection: close over HTTP/1.1, with GOAWAY over HTTP/2. Calls that wait get
//     their answer, watches end, and new connections are still accepted.
//  2. When every connection that was open then is closed, or has been idle for a
//     while, the kernel is told to make no new ones, and those that it has made
//     are accepted.
//  3. When these are settled in the same way, the listeners are closed.

const (
	// quiet is how long a connection has to be idle to be closed: a client that is
	// at work would have used it, and so been told to go.
	quiet = time.Second
	// unused is how long a new connection may take to send its first request.
	unused = 2 * time.Second
	// handshakes is how long connections may take to be made that have begun.
	handshakes = 200 * time.Millisecond
	// backlogTimeout bounds how long the last connections may take to be accepted.
	backlogTimeout = 3 * time.Second
	drainPoll      = 10 * time.Millisecond
)

// connections are the open connections, and since when each is idle.
type connections struct {
	open sync.Map // net.Conn → *connection
}

type connection struct {
	opened time.Time
	used   atomic.Bool  // it has had a request
	idle   atomic.Int64 // since when, in nanoseconds of Unix time; 0 while it is at work
}

// follow keeps book of a server's connections, beside whoever does so already.
func (c *connections) follow(server *http.Server) {
	next := server.ConnState
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		c.note(conn, state)
		if next != nil {
			next(conn, state)
		}
	}
}

func (c *connections) note(conn net.Conn, state http.ConnState) {
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

// settled says whether the connections that were open at a time are closed, or
// have been idle or unused for long enough.
func (c *connections) settled(at time.Time) bool {
	settled, now := true, time.Now()
	c.open.Range(func(_, value any) bool {
		known := value.(*connection)
		switch idle := known.idle.Load(); {
		case known.opened.After(at):
		case !known.used.Load():
			settled = now.Sub(known.opened) > unused
		default:
			settled = idle != 0 && now.Sub(time.Unix(0, idle)) > quiet
		}
		return settled
	})
	return settled
}

// await asks every now and then until the answer is yes or ctx ends.
func await(ctx context.Context, yes func() bool) {
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

// shutdown closes the ports without losing an answer; ending has begun.
func (l *listeners) shutdown(ctx context.Context) error {
	began := time.Now()
	await(ctx, func() bool { return l.connections.settled(began) })
	l.acceptLast(ctx)
	began = time.Now()
	await(ctx, func() bool { return l.connections.settled(began) })
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

// acceptLast makes sure that no connection is waiting to be accepted when the
// listeners are closed.
func (l *listeners) acceptLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	var waiting []*net.TCPListener
	for _, listener := range l.raw {
		if refuseNew(listener) == nil { // a listener that is closed already, or a system that cannot
			waiting = append(waiting, listener)
		}
	}
	if len(waiting) == 0 {
		return
	}
	made := time.Now().Add(handshakes)
	await(ctx, func() bool {
		if time.Now().Before(made) || l.secured != nil && l.secured.handshaking.Load() > 0 {
			return false
		}
		for _, listener := range waiting {
			if n, err := backlog(listener); err == nil && n > 0 {
				return false
			}
		}
		return true
	})
}
