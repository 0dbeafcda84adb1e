package natstest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// proxy forwards one direction between two servers. While it is cut, connections stay open
// and no bytes pass, as after a cable is pulled.
type proxy struct {
	listener net.Listener
	target   func() string

	mu    sync.Mutex
	open  chan struct{}         // closed while bytes may pass; protected by mu
	conns map[net.Conn]struct{} // protected by mu
	ended bool                  // protected by mu
}

func newProxy(t testing.TB, target func() string) *proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target, open: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(p.open)
	go p.serve()
	t.Cleanup(p.close)
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.join(in)
	}
}

func (p *proxy) join(in net.Conn) {
	defer func() { _ = in.Close() }()
	if !p.add(in) {
		return
	}
	defer p.drop(in)
	to := p.target()
	if to == "" {
		return
	}
	out, err := new(net.Dialer).DialContext(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	if !p.add(out) {
		return
	}
	defer p.drop(out)
	done := make(chan struct{}, 2)
	go func() { p.pump(out, in); done <- struct{}{} }()
	go func() { p.pump(in, out); done <- struct{}{} }()
	<-done
}

func (p *proxy) pump(to io.Writer, from io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		<-p.gate()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) gate() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// set cuts the connection between the servers, or restores it.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		if cut && !p.ended {
			p.open = make(chan struct{})
		}
	default:
		if !cut {
			close(p.open)
		}
	}
}

func (p *proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.conns[c] = struct{}{}
	}
	return !p.ended
}

func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *proxy) close() {
	p.set(false)
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for c := range p.conns {
		_ = c.Close()
	}
}
