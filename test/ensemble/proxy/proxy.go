// Package proxy forwards TCP connections on loopback and disturbs them on purpose: the
// links between members of an ensemble go through it. A link can be cut in both directions
// or in one, or slowed down, for all connections or for those of one dialing process
// (source.go identifies it). A cut link neither closes nor refuses connections: it forwards
// nothing, like a network that loses every packet.
//
// Link.mu protects its states, its connections, changed and closed. It is never held while
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

// State is the current behaviour of a link.
type State struct {
	// BlockForward blocks what the dialing side sends, BlockBackward what it would receive.
	BlockForward, BlockBackward bool
	// Delay is added to every write, in each direction.
	Delay time.Duration
}

// Cut blocks a link in both directions.
var Cut = State{BlockForward: true, BlockBackward: true}

// Link forwards the connections to a listener on loopback to a target address.
type Link struct {
	listener net.Listener
	target   string
	source   func(net.Conn) string
	accepts  sync.WaitGroup

	mu      sync.Mutex
	states  map[string]State // by source; "" applies to all other sources
	changed chan struct{}    // closed and replaced at every change
	conns   map[net.Conn]string
	closed  bool
}

// Listen opens a link from an address on loopback to a target. source returns the name of
// the process that dialed a connection; nil treats all connections alike.
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

// Addr returns the address on which the link listens.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Set changes the state of new and open connections of a source; "" means all sources
// without a state of their own. A link that is no longer cut closes its open connections,
// because their ends have given them up or would time out.
func (l *Link) Set(source string, state State) {
	l.mu.Lock()
	before := l.stateLocked(source)
	healed := (before.BlockForward || before.BlockBackward) && !state.BlockForward && !state.BlockBackward
	l.states[source] = state
	close(l.changed)
	l.changed = make(chan struct{})
	var broken []net.Conn
	for c, from := range l.conns {
		if healed && (from == source || source == "") {
			broken = append(broken, c)
			delete(l.conns, c) // blocked data is discarded
		}
	}
	l.mu.Unlock()
	for _, c := range broken {
		_ = c.Close() // ends the copying goroutines
	}
}

func (l *Link) stateLocked(source string) State {
	if state, ok := l.states[source]; ok {
		return state
	}
	return l.states[""]
}

// Close closes the link and its connections.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.mu.Lock()
	l.closed = true
	for c := range l.conns {
		_ = c.Close() // ends the copying goroutines
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

// forward connects the two ends and copies until one of them closes.
func (l *Link) forward(from net.Conn) {
	source := l.source(from)
	if !l.register(from, source) {
		return
	}
	defer l.unregister(from)
	// While the link is cut, the target must not see the connection.
	if !l.wait(from, func(s State) bool { return !s.BlockForward && !s.BlockBackward }) {
		return
	}
	to, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", l.target)
	if err != nil || !l.register(to, source) {
		return
	}
	defer l.unregister(to)
	var both sync.WaitGroup
	both.Go(func() { l.copy(to, from, func(s State) bool { return !s.BlockForward }) })
	both.Go(func() { l.copy(from, to, func(s State) bool { return !s.BlockBackward }) })
	both.Wait()
}

// register registers a connection, or closes it if the link is closed.
func (l *Link) register(c net.Conn, source string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return false
	}
	l.conns[c] = source
	return true
}

func (l *Link) unregister(c net.Conn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	_ = c.Close() // may already be closed
}

// wait waits until the link is open in a direction. It returns false if the connection
// ends first.
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

// copy copies in one direction. When it returns, the other direction ends too.
func (l *Link) copy(to, from net.Conn, open func(State) bool) {
	defer func() { _ = errors.Join(to.Close(), from.Close()) }() // ends the other direction
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
