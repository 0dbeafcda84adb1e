package natsserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/natsserver"
	"freshet/internal/ensemble/natsserver/natstest"
)

func open(t *testing.T, c *natstest.Cluster, i int) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(c.Connect(i))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func streamConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: replicas}
}

func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAcknowledgedMessagesSurviveRestarts(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		c := natstest.New(t, servers)
		ctx := withTimeout(t, 2*time.Minute)
		js := open(t, c, 0)
		c.CreateStream(ctx, js, streamConfig(servers))
		// Without a leader the stream does not respond; on a busy machine the election takes long.
		if _, err := js.Publish(ctx, "s", make([]byte, natsserver.MinMaxPayload),
			jetstream.WithRetryAttempts(1000), jetstream.WithRetryWait(100*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		for i := range servers {
			c.Stop(i)
		}
		for i := range servers {
			c.Start(i)
		}
		c.Ready()
		var msg *jetstream.RawStreamMsg
		for {
			// A response can get lost while the servers elect leaders, so each attempt has a
			// timeout.
			try, cancel := context.WithTimeout(ctx, 2*time.Second)
			s, err := js.Stream(try, "S")
			if err == nil {
				msg, err = s.GetMsg(try, 1)
			}
			cancel()
			if err == nil {
				break
			}
			select {
			case <-time.After(100 * time.Millisecond): // the servers need the processor
			case <-ctx.Done():
				t.Fatalf("%d servers: got error %v, want the message", servers, err)
			}
		}
		if len(msg.Data) != natsserver.MinMaxPayload {
			t.Errorf("%d servers: got %d bytes, want %d", servers, len(msg.Data), natsserver.MinMaxPayload)
		}
	}
}

// TestStepDown: StepDown gives up all streams that the server leads, and other servers lead
// them when it returns.
func TestStepDown(t *testing.T) {
	t.Parallel()
	c := natstest.New(t, 3)
	ctx := withTimeout(t, time.Minute)
	js := open(t, c, 0)
	c.CreateStream(ctx, js, streamConfig(3))
	if !c.Lead(ctx, js.Conn(), "S", 1) {
		t.Fatal("server 1 did not become the leader")
	}
	for i, want := range []int{0, 1} {
		if streams, err := c.Server(i).StepDown(ctx); streams != want || err != nil {
			t.Errorf("server %d: gave up %d streams with error %v, want %d", i, streams, err, want)
		}
	}
	if leader := c.Leader(ctx, js.Conn(), "S"); leader == 1 {
		t.Error("server 1 still leads")
	}
	alone := natstest.New(t, 1)
	if _, err := alone.Server(0).StepDown(ctx); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("single server: got error %v, want kind unavailable", err)
	}
}

func TestAServerAloneListensNowhere(t *testing.T) {
	c := natstest.New(t, 1)
	if addr := c.Server(0).RouteAddr(); addr != nil {
		t.Errorf("got a listener on %v, want none", addr)
	}
	if err := c.Server(0).Health(); err != nil {
		t.Errorf("health: got %v, want none", err)
	}
	c.Server(0).Close()
	if err := c.Server(0).Health(); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("health of a closed server: got %v, want unavailable", err)
	}
}

// Close does not wait for an unresponsive server: it returns while the TLS handshake with
// that server is still in progress.
func TestCloseDoesNotWaitForASilentServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s, err := natsserver.Start(t.Context(), natsserver.Options{
		Name: "a", ClusterName: "test", Dir: t.TempDir(), Listen: "127.0.0.1:0",
		Routes: []string{silent.Addr().String()},
		TLS:    natstest.New(t, 3).TLS("a"), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s.Close()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("handshake after Close: got %v, want it still open", err)
	}
}

// A client without a certificate of the ensemble's authority gets nothing from the route
// listener.
func TestRoutesNeedACertificateOfTheEnsemble(t *testing.T) {
	c := natstest.New(t, 3)
	addr := c.Server(0).RouteAddr().String()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // plays an attacker
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		n, err := conn.Read(make([]byte, 1))
		if err == nil {
			t.Errorf("without a certificate: got %d bytes, want the connection closed", n)
		}
		conn.Close()
	}
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := raw.Write([]byte("CONNECT {}\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 512)
	n, _ := raw.Read(buf)
	if strings.Contains(string(buf[:n]), "INFO") || strings.Contains(string(buf[:n]), "PONG") {
		t.Errorf("without TLS: got %q, want no response of the route protocol", buf[:n])
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	pool := x509.NewCertPool()
	good := &tls.Config{RootCAs: pool, ClientCAs: pool, Certificates: []tls.Certificate{{}}}
	routes := []string{"127.0.0.1:1"}
	for name, o := range map[string]natsserver.Options{
		"no name":                {Dir: t.TempDir()},
		"no directory":           {Name: "a"},
		"small messages":         {Name: "a", Dir: t.TempDir(), MaxPayload: 1 << 20},
		"routes without address": {Name: "a", Dir: t.TempDir(), Routes: routes},
		"no cluster name":        {Name: "a", Dir: t.TempDir(), Listen: "127.0.0.1:0", Routes: routes, TLS: good},
		"no routes":              {Name: "a", Dir: t.TempDir(), Listen: "127.0.0.1:0", ClusterName: "c", TLS: good},
		"no TLS": {
			Name: "a", Dir: t.TempDir(), Listen: "127.0.0.1:0", ClusterName: "c", Routes: routes,
		},
		"no authority": {
			Name: "a", Dir: t.TempDir(), Listen: "127.0.0.1:0", ClusterName: "c", Routes: routes,
			TLS: &tls.Config{},
		},
		"no port": {Name: "a", Dir: t.TempDir(), Listen: "127.0.0.1", ClusterName: "c", Routes: routes, TLS: good},
	} {
		o.Logger = slog.New(slog.DiscardHandler)
		s, err := natsserver.Start(t.Context(), o)
		if err == nil {
			s.Close()
			t.Errorf("%s: got a server, want an error", name)
		}
	}
}

func TestAnAddressInUseIsAnError(t *testing.T) {
	c := natstest.New(t, 3)
	_, err := natsserver.Start(t.Context(), natsserver.Options{
		Name: "x", Dir: t.TempDir(), Listen: c.Server(0).RouteAddr().String(), ClusterName: "x",
		Routes: []string{"127.0.0.1:9"},
		TLS:    c.TLS("x"),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got error %v, want address already in use", err)
	}
}

func TestAMinorityIsNotReady(t *testing.T) {
	t.Parallel()
	c := natstest.New(t, 3)
	c.Stop(0)
	c.Stop(1)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		once, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		err := c.Server(2).Ready(once)
		stop()
		if errors.Is(err, natsserver.ErrNotReady) {
			return
		}
	}
	t.Error("one of three servers is ready, want ErrNotReady")
}
