package pipe_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"freshet/internal/base/pipe"
)

func TestDialReachesAccept(t *testing.T) {
	t.Parallel()
	listener := pipe.New("host:1")
	if got := listener.Addr(); got.Network() != "pipe" || got.String() != "host:1" {
		t.Errorf("address: got %s %s, want pipe host:1", got.Network(), got)
	}
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "hello") // the reader reports a failure
		_ = conn.Close()
	}()
	conn, err := listener.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
		t.Errorf("read: got %q, %v, want hello", got, err)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	listener := pipe.New("host")
	for range 2 {
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := listener.Dial(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial: got %v, want net.ErrClosed", err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: got %v, want net.ErrClosed", err)
	}
}

func TestDialEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := pipe.New("host").Dial(ctx); !errors.Is(err, why) {
		t.Errorf("dial: got %v, want the cause", err)
	}
}
