// Package proxy forwards TCP connections on loopback and breaks them on purpose:
// the links between members of a group go through it. A link can be cut in both
// directions, in one, or slowed down; what is cut neither closes nor refuses, it
// is silent, as a network is that loses every packet.
//
// The lock of a Link guards its state and its connections. It is never held while
// reading, writing or waiting.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// State is what a link does with bytes.
type State struct {
	// Forth stops what the dialling side sends, Back what it would get.
	Forth, Back bool
	// Delay is added to everything that passes, in each direction.
	Delay time.Duration
}

// Cut stops a link in both directions.
var Cut = State{Forth: true, Back: true}

// Link is a listener on loopback and the address that its connections go to.
type Link struct {
	listener net.Listener
	target   string
	accepts  sync.WaitGroup

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed with every change of state
	conns   map[net.Conn]struct{}
	closed  bool
}

// Listen opens a link to target on a free port of loopback.
func Listen(ctx context.Context, target string) (*Link, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the proxy of %s: %w", target, err)
	}
	l := &Link{listener: listener, target: target, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	l.accepts.Go(l.accept)
	return l, nil
}

// Addr is where the link listens.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Set changes what the link does, for connections that are open too. A link that
// is no longer cut loses the connections that it had: their ends have given them
// up, or shall.
func (l *Link) Set(state State) {
	l.mu.Lock()
	healed := (l.state.Forth || l.state.Back) && !state.Forth && !state.Back
	l.state = state
	close(l.changed)
	l.changed = make(chan struct{})
	var broken []net.Conn
	if healed {
		for c := range l.conns {
			broken = append(broken, c)
		}
		clear(l.conns) // what waited to pass never does
	}
	l.mu.Unlock()
	for _, c := range broken {
		_ = c.Close() // whoever copies sees it
	}
}

// Close ends the link and its connections.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.mu.Lock()
	l.closed = true
	for c := range l.conns {
		_ = c.Close() // whoever copies sees it
	}
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	l.accepts.Wait()
	return err
}

func (l *Link) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.accepts.Go(func() { l.forward(from) })
	}
}

// forward connects the two ends and copies until one of them ends.
func (l *Link) forward(from net.Conn) {
	if !l.keep(from) {
		return
	}
	defer l.drop(from)
	// While the link is cut nobody answers at the other end.
	if !l.wait(from, func(s State) bool { return !s.Forth && !s.Back }) {
		return
	}
	to, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", l.target)
	if err != nil || !l.keep(to) {
		return
	}
	defer l.drop(to)
	var both sync.WaitGroup
	both.Go(func() { l.copy(to, from, func(s State) bool { return !s.Forth }) })
	both.Go(func() { l.copy(from, to, func(s State) bool { return !s.Back }) })
	both.Wait()
}

// keep remembers a connection, unless the link is closed.
func (l *Link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close() // nobody uses it
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *Link) drop(c net.Conn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	_ = c.Close() // it may be closed already
}

// wait waits until the link is open in a direction. It returns false when the
// connection is over first.
func (l *Link) wait(c net.Conn, open func(State) bool) bool {
	for {
		l.mu.Lock()
		_, alive := l.conns[c]
		state, changed := l.state, l.changed
		if !alive || l.closed {
			l.mu.Unlock()
			return false
		}
		l.mu.Unlock()
		if open(state) {
			return true
		}
		<-changed
	}
}

// copy moves bytes one way. When it ends the other direction ends too.
func (l *Link) copy(to, from net.Conn, open func(State) bool) {
	defer func() { _ = errors.Join(to.Close(), from.Close()) }() // the other direction sees it
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !l.wait(from, open) {
				return
			}
			if delay := l.delay(); delay > 0 {
				<-time.After(delay)
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) || err != nil {
			return
		}
	}
}

func (l *Link) delay() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Delay
}
