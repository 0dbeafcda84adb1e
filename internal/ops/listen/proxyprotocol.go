package listen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/proxies"
)

// Limits of the PROXY protocol.
const (
	maxProxyLine = 107     // of version 1, as specified
	maxProxyV2   = 4 << 10 // addresses and extensions of version 2
)

// signatureV2 begins a header of version 2.
var signatureV2 = []byte("\r\n\r\n\x00\r\nQUIT\n")

var errProxyHeader = errors.New("connection of a trusted proxy does not begin with a valid PROXY protocol header")

// AcceptProxied returns a listener for connections of proxies that send the PROXY protocol,
// version 1 or 2. Connections from trusted addresses must begin with its header, within the
// timeout; their RemoteAddr is the address in the header. Connections from other addresses are not
// changed, so that no client can choose its address.
//
// It reads the headers concurrently, because a slow proxy must not delay others. The inner
// listener limits the number of connections.
func AcceptProxied(inner net.Listener, trusted proxies.Set, timeout time.Duration) net.Listener {
	l := &proxiedListener{
		Listener: inner, trusted: trusted, timeout: timeout,
		conns: make(chan net.Conn), failures: make(chan error), closed: make(chan struct{}),
	}
	go l.run()
	return l
}

type proxiedListener struct {
	net.Listener
	trusted  proxies.Set
	timeout  time.Duration
	conns    chan net.Conn
	failures chan error // errors of the inner listener
	once     sync.Once
	closed   chan struct{}
}

// run accepts connections until the listener is closed. Accept returns the errors, so that its
// caller decides when to retry.
func (l *proxiedListener) run() {
	for {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil && l.trusted.ContainsRemote(conn.RemoteAddr().String()):
			go l.readHeader(conn)
		case err == nil:
			go l.deliver(conn)
		case errors.Is(err, net.ErrClosed):
			_ = l.Close() // ends Accept
			return
		default:
			select {
			case l.failures <- err:
			case <-l.closed:
				return
			}
		}
	}
}

// readHeader reads the header of a connection and delivers the connection.
func (l *proxiedListener) readHeader(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(l.timeout)) // reading fails on a closed connection
	client, err := readProxyHeader(conn)
	if err != nil || conn.SetDeadline(time.Time{}) != nil {
		_ = conn.Close()
		return
	}
	if client.IsValid() {
		conn = &proxiedConn{Conn: conn, client: net.TCPAddrFromAddrPort(client)}
	}
	l.deliver(conn)
}

func (l *proxiedListener) deliver(conn net.Conn) {
	select {
	case l.conns <- conn:
	case <-l.closed:
		_ = conn.Close() // the listener is closed
	}
}

// Accept implements net.Listener.
func (l *proxiedListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case err := <-l.failures:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *proxiedListener) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		err = l.Listener.Close()
	})
	return err
}

// proxiedConn is a connection of a proxy.
type proxiedConn struct {
	net.Conn
	client net.Addr
}

// RemoteAddr returns the address of the proxy's client.
func (c *proxiedConn) RemoteAddr() net.Addr { return c.client }

// CloseWrite closes one direction; see limitedConn.
func (c *proxiedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// readProxyHeader reads the header of the PROXY protocol and nothing after it. It returns the
// address of the client, which is not valid if the proxy itself has connected, for a health check.
func readProxyHeader(r io.Reader) (netip.AddrPort, error) {
	start := make([]byte, len(signatureV2))
	if _, err := io.ReadFull(r, start); err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: %w", errProxyHeader, err)
	}
	if bytes.Equal(start, signatureV2) {
		return readProxyV2(r)
	}
	line := start
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		var next [1]byte
		if len(line) == maxProxyLine || !bytes.HasPrefix(line, []byte("PROXY ")) {
			return netip.AddrPort{}, errProxyHeader
		}
		if _, err := io.ReadFull(r, next[:]); err != nil {
			return netip.AddrPort{}, fmt.Errorf("%w: %w", errProxyHeader, err)
		}
		line = append(line, next[0])
	}
	return parseProxyLine(string(line[:len(line)-2]))
}

// parseProxyLine parses a header of version 1: PROXY TCP4 <client> <server> <port> <port>.
func parseProxyLine(line string) (netip.AddrPort, error) {
	words := strings.Split(line, " ")
	if len(words) >= 2 && words[0] == "PROXY" && words[1] == "UNKNOWN" {
		return netip.AddrPort{}, nil
	}
	if len(words) != 6 || words[0] != "PROXY" {
		return netip.AddrPort{}, errProxyHeader
	}
	client, err := netip.ParseAddrPort(net.JoinHostPort(words[2], words[4]))
	server, serverErr := netip.ParseAddrPort(net.JoinHostPort(words[3], words[5]))
	if err != nil || serverErr != nil || client.Addr().Zone() != "" || server.Addr().Zone() != "" {
		return netip.AddrPort{}, errProxyHeader
	}
	family := "TCP6"
	if client.Addr().Is4() {
		family = "TCP4"
	}
	if words[1] != family || client.Addr().Is4() != server.Addr().Is4() {
		return netip.AddrPort{}, errProxyHeader
	}
	return netip.AddrPortFrom(client.Addr().Unmap(), client.Port()), nil
}

// Values of a header of version 2.
const (
	commandLocal = 0x20 // the proxy itself has connected
	commandProxy = 0x21
	familyNone   = 0x00
	familyTCP4   = 0x11
	familyTCP6   = 0x21
)

// readProxyV2 reads a header of version 2 after its signature.
func readProxyV2(r io.Reader) (netip.AddrPort, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: %w", errProxyHeader, err)
	}
	command, family, length := head[0], head[1], int(binary.BigEndian.Uint16(head[2:]))
	if length > maxProxyV2 || command != commandLocal && command != commandProxy {
		return netip.AddrPort{}, errProxyHeader
	}
	rest := make([]byte, length)
	if _, err := io.ReadFull(r, rest); err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w: %w", errProxyHeader, err)
	}
	size := map[byte]int{familyTCP4: 4, familyTCP6: 16}[family]
	switch {
	case command == commandLocal || family == familyNone:
		return netip.AddrPort{}, nil
	case size == 0 || length < 2*size+4:
		return netip.AddrPort{}, errProxyHeader
	}
	address, _ := netip.AddrFromSlice(rest[:size]) // the size is that of an address
	return netip.AddrPortFrom(address.Unmap(), binary.BigEndian.Uint16(rest[2*size:])), nil
}
