package kafkaapi_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/surfaces/kafkaapi"
	"freshet/internal/surfaces/pipeline"
	"freshet/test/tally"
)

// The documented limits of connections that do not authenticate.
const (
	unauthenticatedByAddress = 500
	unauthenticatedInTotal   = 2000
)

// TestAttackConnections holds unauthenticated connections open. It checks the limits per address and in total, and
// that the connections end when their time to authenticate is over. It runs in a synctest bubble, so that the
// load of the machine does not decide.
func TestAttackConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &pipeListener{accepted: make(chan net.Conn), closed: make(chan struct{})}
		server := kafkaapi.NewServer(kafkaapi.Options{ // strangers reach none of the dependencies
			Options: pipeline.Options{
				Authenticator: struct{ pipeline.Authenticator }{}, Authorizer: struct{ pipeline.Authorizer }{},
			},
			Policy: struct{ kafkaapi.Policy }{}, Clusters: struct{ kafkaapi.Clusters }{},
			Limits: kafkaapi.Limits{Connections: 5 * unauthenticatedInTotal},
		})
		go func() { _ = server.Serve(kafkaapi.Listener{Listener: l, Name: "attacked"}) }()
		var open atomic.Int64
		attempts, successes := 0, 0
		check := func(when string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := open.Load(); got != want {
				successes++
				t.Errorf("%s: got %d open connections, want %d", when, got, want)
			}
		}
		dial := func(n int, address string) {
			attempts += n
			for range n {
				l.dial(address, &open)
			}
		}
		dial(unauthenticatedByAddress+100, "127.0.0.3")
		check("in the grace period of one address", unauthenticatedByAddress+100)
		time.Sleep(2 * time.Second)
		check("after the grace period", unauthenticatedByAddress)
		for i := range unauthenticatedInTotal/unauthenticatedByAddress + 1 {
			dial(unauthenticatedByAddress, fmt.Sprintf("127.0.1.%d", i+1))
		}
		check("with many addresses", unauthenticatedInTotal)
		time.Sleep(10 * time.Second)
		check("after the time to authenticate", 0)
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		tally.Attack(t, "connections that do not authenticate", attempts, successes)
	})
}

// pipeListener is a listener without a network, so that a test can run in a synctest bubble.
type pipeListener struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddress("127.0.0.1:9092") }

// dial connects from an address, and counts the connection in open until the server closes it.
func (l *pipeListener) dial(address string, open *atomic.Int64) {
	client, server := net.Pipe()
	l.accepted <- pipeConn{Conn: server, remote: pipeAddress(address + ":1024")}
	open.Add(1)
	go func() {
		defer open.Add(-1)
		_, _ = client.Read(make([]byte, 1))
		_ = client.Close()
	}()
}

type pipeConn struct {
	net.Conn
	remote pipeAddress
}

func (c pipeConn) RemoteAddr() net.Addr { return c.remote }

type pipeAddress string

func (a pipeAddress) Network() string { return "tcp" }
func (a pipeAddress) String() string  { return string(a) }
