// Package proxy forwards TCP connections on loopback and breaks them on purpose:
// the links between members of a group go through it. A link can be cut in both
// directions, in one, or slowed down, for everybody or for one process that dials
// (source.go finds out which one does); what is cut neither closes nor refuses, it
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
	source   func(net.Conn) string
	accepts  sync.WaitGroup

	mu      sync.Mutex
	states  map[string]State // by source; "" is everybody without one
	changed chan struct{}    // closed with every change of a state
	conns   map[net.Conn]string
	closed  bool
}

// Listen opens a link from an address of loopback to another. Source names who has
// dialled a connection; nil when that does not matter.
func Listen(ctx context.Context, address, target string, source func(net.Conn) string) (*Link, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for the proxy of %s: %w", target, err)
	}
	if source == nil {
		source = func(net.Conn) string { return "" }
	}
	l := &Link{
		listener: listener, target: target, source: source,
		states: map[string]State{}, changed: make(chan struct{}), conns: map[net.Conn]string{},
	}
	l.accepts.Go(l.accept)
	return l, nil
}

// Addr is where the link listens.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Set changes what the link does with connections of a source, "" for all that have
// no state of their own; those that are open too. A link that is no longer cut loses
// the connections that it had: their ends have given them up, or shall.
func (l *Link) Set(source string, state State) {
	l.mu.Lock()
	before := l.stateLocked(source)
	healed := (before.Forth || before.Back) && !state.Forth && !state.Back
	l.states[source] = state
	close(l.changed)
	l.changed = make(chan struct{})
	var broken []net.Conn
	for c, from := range l.conns {
		if healed && (from == source || source == "") {
			broken = append(broken, c)
			delete(l.conns, c) // what waited to pass never does
		}
	}
	l.mu.Unlock()
	for _, c := range broken {
		_ = c.Close() // whoever copies sees it
	}
}

func (l *Link) stateLocked(source string) State {
	if state, ok := l.states[source]; ok {
		return state
	}
	return l.states[""]
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
	source := l.source(from)
	if !l.keep(from, source) {
		return
	}
	defer l.drop(from)
	// While the link is cut nobody answers at the other end.
	if !l.wait(from, func(s State) bool { return !s.Forth && !s.Back }) {
		return
	}
	to, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", l.target)
	if err != nil || !l.keep(to, source) {
		return
	}
	defer l.drop(to)
	var both sync.WaitGroup
	both.Go(func() { l.copy(to, from, func(s State) bool { return !s.Forth }) })
	both.Go(func() { l.copy(from, to, func(s State) bool { return !s.Back }) })
	both.Wait()
}

// keep remembers a connection, unless the link is closed.
func (l *Link) keep(c net.Conn, source string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close() // nobody uses it
		return false
	}
	l.conns[c] = source
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
		source, alive := l.conns[c]
		state, changed := l.stateLocked(source), l.changed
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
			if delay := l.delay(from); delay > 0 {
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

func (l *Link) delay(c net.Conn) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stateLocked(l.conns[c]).Delay
}
