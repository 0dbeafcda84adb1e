package listen

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// ignoring is a Refuser that replaces nothing.
type ignoring struct{}

func (ignoring) Attach(*http.Server)               {}
func (ignoring) Watch(l net.Listener) net.Listener { return l }

// testOptions returns options for ports on the loopback address.
func testOptions(t *testing.T) Options {
	t.Helper()
	plain, ops := "127.0.0.1:0", "127.0.0.1:0"
	failed := make(chan error, 4)
	t.Cleanup(func() {
		select {
		case err := <-failed:
			t.Errorf("serving failed: %v", err)
		default:
		}
	})
	return Options{
		HTTP: &plain, Ops: &ops, Connections: 10, Shared: NewLimit(10),
		ReadHeader: 10 * time.Second, Idle: time.Minute, HeaderSize: 8 << 10,
		Log: slog.New(slog.DiscardHandler), Failed: failed,
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	l, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, address := range map[string]string{"http": *opts.HTTP, "ops": *opts.Ops} {
		if host, port, err := net.SplitHostPort(address); err != nil || host != "127.0.0.1" || port == "0" {
			t.Errorf("address of %s is %q, want the real port", name, address)
		}
	}
	if l.https != nil {
		t.Error("HTTPS port is open, want it off")
	}
	// The same port again: the error names the flag, and the other ports are closed.
	taken, free := *opts.Ops, "127.0.0.1:0"
	again := testOptions(t)
	again.HTTP, again.Ops = &free, &taken
	if _, err := Open(t.Context(), again); err == nil || !strings.Contains(err.Error(), "--ops") {
		t.Errorf("address in use: got %v, want an error that contains --ops", err)
	}
	probe, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", free)
	if err != nil {
		t.Fatalf("port that was opened before the error: got %v, want it closed", err)
	}
	_ = probe.Close() // only a probe
}

func TestWithPort(t *testing.T) {
	t.Parallel()
	real := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}
	for address, want := range map[string]string{
		"localhost:0": "localhost:4711", ":0": ":4711", "[::1]:0": "[::1]:4711", "nonsense": "127.0.0.1:4711",
	} {
		if got := WithPort(address, real); got != want {
			t.Errorf("WithPort(%q) = %q, want %q", address, got, want)
		}
	}
}

// TestShutdownSendsEveryResponse checks that a request that is running, and one on a connection
// that was opened before the shutdown, get their responses.
func TestShutdownSendsEveryResponse(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	l, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	entered, finish := make(chan struct{}), make(chan struct{})
	var ending atomic.Bool
	l.ServeMain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(entered)
			<-finish
		}
		if ending.Load() {
			w.Header().Set("Connection", "close")
		}
		_, _ = io.WriteString(w, "served") // fails only if the client disconnected
	}), ignoring{}, nil)
	get := func(path string) (string, error) {
		response, err := (&http.Client{Timeout: 20 * time.Second}).Get("http://" + *opts.HTTP + path)
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	type answer struct {
		text string
		err  error
	}
	slow := make(chan answer, 1)
	go func() {
		text, err := get("/slow")
		slow <- answer{text, err}
	}()
	<-entered
	early, err := net.Dial("tcp", *opts.HTTP) // it sends its request during the shutdown
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = early.Close() }()
	ending.Store(true)
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		ended <- l.Shutdown(ctx)
	}()
	if _, err := io.WriteString(early, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(early), nil)
	if err != nil {
		t.Fatalf("request during the shutdown: got %v, want a response", err)
	}
	_ = response.Body.Close() // only the status counts
	if response.StatusCode != http.StatusOK || !response.Close {
		t.Errorf("request during the shutdown: got %s, close %v; want 200 and a closed connection",
			response.Status, response.Close)
	}
	close(finish)
	if got := <-slow; got.err != nil || got.text != "served" {
		t.Errorf("running request: got %q, %v; want its response", got.text, got.err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if _, err := get("/"); err == nil {
		t.Error("request after the shutdown succeeds, want a closed port")
	}
}

// TestPlainHTTPOnTheTLSPort checks the hint for clients that use the wrong scheme.
func TestPlainHTTPOnTheTLSPort(t *testing.T) {
	t.Parallel()
	opts := testOptions(t)
	secured := "127.0.0.1:0"
	opts.HTTP, opts.HTTPS, opts.Ops = nil, &secured, nil
	l, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	source := httptest.NewUnstartedServer(nil)
	source.StartTLS()
	defer source.Close()
	l.ServeMain(http.NotFoundHandler(), ignoring{}, &tls.Config{
		Certificates: source.TLS.Certificates, MinVersion: tls.VersionTLS12,
	})
	c, err := net.Dial("tcp", secured)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(c) // a reset after the response does not matter
	if !strings.Contains(string(text), "This is the HTTPS port: use https://") {
		t.Errorf("got %q, want a hint to use https", text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := l.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}
