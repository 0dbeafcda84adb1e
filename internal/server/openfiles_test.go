package server

import (
	"errors"
	"net"
	"testing"

	"freshet/internal/config"
)

func TestFilesAreDivided(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limit uint64
		want  fileBudget
	}{
		"hardly any": {300, fileBudget{150, 75}},
		"few":        {1024, fileBudget{512, 256}},
		"some":       {20_000, fileBudget{18_000, 1000}},
		"many":       {1 << 20, fileBudget{1<<20 - 2000, 1000}},
		"no limit":   {1<<64 - 1, fileBudget{1<<30 - 2000, 1000}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := divideFiles(tc.limit); got != tc.want {
				t.Errorf("%d files: %+v, want %+v", tc.limit, got, tc.want)
			}
		})
	}
}

func TestKafkaLeavesFilesToHTTP(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	for limit, want := range map[uint64]int{300: 100, 1024: 341, 20_000: 10_000} {
		if got := kafkaConnections(cfg, divideFiles(limit)); got != want {
			t.Errorf("Kafka connections of a listener with %d open files: got %d, want %d", limit, got, want)
		}
	}
}

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
	shared := make(connectionLimit, 1)
	one, two := make(pipes, 1), make(pipes, 1)
	first, second := shared.apply(one), shared.apply(two)
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
