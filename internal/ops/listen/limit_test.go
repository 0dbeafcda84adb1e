package listen

import (
	"errors"
	"net"
	"testing"
)

// pipes is a listener that accepts the connections of a channel.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func TestConnectionLimitIsSharedByListeners(t *testing.T) {
	t.Parallel()
	shared := NewLimit(1)
	one, two := make(pipes, 1), make(pipes, 1)
	first, second := shared.Apply(one), shared.Apply(two)
	end, _ := net.Pipe()
	one <- end
	inside, err := first.Accept()
	if err != nil {
		t.Fatal(err)
	}
	other, _ := net.Pipe()
	two <- other
	accepted := make(chan error, 1)
	go func() {
		_, err := second.Accept()
		accepted <- err
	}()
	select {
	case err := <-accepted:
		t.Fatalf("second connection was accepted above the limit: %v", err)
	default:
	}
	if err := errors.Join(inside.Close(), inside.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatalf("second connection was not accepted below the limit: %v", err)
	}
	// The limit is reached again: only Close ends the wait of the first listener.
	go func() {
		_, err := first.Accept()
		accepted <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed listener: got %v, want %v", err, net.ErrClosed)
	}
}
