package server

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestTurnAway: clients of a member that starts are reset at once and do not wait, and
// once it serves they are accepted.
func TestTurnAway(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port, _ := listener.(*net.TCPListener)
	dial := func() (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn, conn.SetDeadline(time.Now().Add(20 * time.Second))
	}
	end := turnAway(port)
	for range 3 {
		conn, err := dial() // it may be reset already
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("while it starts: got error %v, want %v", err, syscall.ECONNRESET)
		}
	}
	end()
	end() // does nothing
	client, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatalf("when it serves: got error %v, want a connection", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "x"); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("when it serves: read %d bytes with error %v, want one", n, err)
	}
}

// TestTurnAwayEnds: a start that fails closes the port, and nobody waits for it.
func TestTurnAwayEnds(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port, _ := listener.(*net.TCPListener)
	end := turnAway(port)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	end()
}
