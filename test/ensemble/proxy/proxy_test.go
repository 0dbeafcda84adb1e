package proxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"freshet/test/ensemble/proxy"
)

// echo starts a server that returns what it receives.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return listener.Addr().String()
}

func open(t *testing.T) (*proxy.Link, func() net.Conn) {
	t.Helper()
	link, err := proxy.Listen(t.Context(), "127.0.0.1:0", echo(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	return link, func() net.Conn {
		c, err := net.Dial("tcp", link.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// roundTrip sends a byte and waits until it comes back.
func roundTrip(c net.Conn, timeout time.Duration) error {
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

func TestLink(t *testing.T) {
	t.Parallel()
	const short, long = 100 * time.Millisecond, 10 * time.Second
	link, dial := open(t)
	c := dial()
	if err := roundTrip(c, long); err != nil {
		t.Fatalf("open link: got %v, want a response", err)
	}
	for name, state := range map[string]proxy.State{
		"cut": proxy.Cut, "forth": {BlockForward: true},
		"back": {BlockBackward: true},
	} {
		link.Set("", state)
		if err := roundTrip(c, short); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s, existing connection: got %v, want a timeout", name, err)
		}
		if err := roundTrip(dial(), short); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s, new connection: got %v, want a timeout", name, err)
		}
		link.Set("", proxy.State{})
		if err := roundTrip(c, long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s and healed, existing connection: got %v, want it closed", name, err)
		}
		c = dial()
		if err := roundTrip(c, long); err != nil {
			t.Errorf("%s and healed: got %v, want a response", name, err)
		}
	}
	link.Set("", proxy.State{Delay: 50 * time.Millisecond})
	began := time.Now()
	if err := roundTrip(c, long); err != nil {
		t.Errorf("slow link: got %v, want a response", err)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("link with a delay of 50 ms: got a response in %s, want at least 100 ms", took)
	}
	if err := link.Close(); err != nil {
		t.Error(err)
	}
	if err := roundTrip(c, long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("closed link: got %v, want a closed connection", err)
	}
}

// TestSource checks that a link can be cut for one process and open for another.
func TestSource(t *testing.T) {
	t.Parallel()
	processes := proxy.Processes{"self": os.Getpid}
	link, err := proxy.Listen(t.Context(), "127.0.0.1:0", echo(t), processes.Of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	link.Set("another", proxy.Cut)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", link.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	if err := roundTrip(dial(), 10*time.Second); err != nil {
		t.Errorf("link cut for another process: got %v, want a response", err)
	}
	link.Set("self", proxy.Cut)
	if err := roundTrip(dial(), 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("link cut for this process: got %v, want a timeout", err)
	}
	stranger := proxy.Processes{"self": func() int { return 1 }}
	if got := stranger.Of(dial()); got != "" {
		t.Errorf("connection of an unknown process: got %q, want no name", got)
	}
}
