package proxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"freshet/test/cluster/proxy"
)

// echo answers what it is sent.
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

// say sends a letter and waits for it to come back.
func say(c net.Conn, patience time.Duration) error {
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
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
	if err := say(c, long); err != nil {
		t.Fatalf("through an open link: got %v, want an answer", err)
	}
	for name, state := range map[string]proxy.State{"cut": proxy.Cut, "forth": {Forth: true}, "back": {Back: true}} {
		link.Set("", state)
		if err := say(c, short); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s, on a connection from before: got %v, want silence", name, err)
		}
		if err := say(dial(), short); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s, on a new connection: got %v, want silence", name, err)
		}
		link.Set("", proxy.State{})
		if err := say(c, long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s and healed, on a connection from before: got %v, want it closed", name, err)
		}
		c = dial()
		if err := say(c, long); err != nil {
			t.Errorf("%s and healed: got %v, want an answer", name, err)
		}
	}
	link.Set("", proxy.State{Delay: 50 * time.Millisecond})
	began := time.Now()
	if err := say(c, long); err != nil {
		t.Errorf("through a slow link: got %v, want an answer", err)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("through a link that is 50 ms slow: got an answer in %s, want 100 ms or more", took)
	}
	if err := link.Close(); err != nil {
		t.Error(err)
	}
	if err := say(c, long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("through a closed link: got %v, want it closed", err)
	}
}

// TestSource: a link is cut for one process and open for another.
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
	if err := say(dial(), 10*time.Second); err != nil {
		t.Errorf("a link that is cut for another: got %v, want an answer", err)
	}
	link.Set("self", proxy.Cut)
	if err := say(dial(), 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a link that is cut for this process: got %v, want silence", err)
	}
	stranger := proxy.Processes{"self": func() int { return 1 }}
	if got := stranger.Of(dial()); got != "" {
		t.Errorf("a connection of nobody who is known: got %q, want none", got)
	}
}
