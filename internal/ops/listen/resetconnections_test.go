package listen

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestResetConnections checks that connections to a starting member are reset immediately, and that
// they are accepted once it serves.
func TestResetConnections(t *testing.T) {
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
	end := ResetConnections(port)
	for range 3 {
		conn, err := dial() // it may be reset already
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("while the member starts: got error %v, want %v", err, syscall.ECONNRESET)
		}
	}
	end()
	end() // a second call has no effect
	client, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatalf("when the member serves: got error %v, want a connection", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "x"); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("when the member serves: read %d bytes with error %v, want one", n, err)
	}
}

// TestResetConnectionsEnds checks that end returns after a failed start has closed the port.
func TestResetConnectionsEnds(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port, _ := listener.(*net.TCPListener)
	end := ResetConnections(port)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	end()
}
