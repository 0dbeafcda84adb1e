package operate_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/test/tally"
	"freshet/test/testserver"
)

// load runs clients of every surface while the server stops. Every request on an accepted
// connection must get a response.
type load struct {
	t        *testing.T
	server   *testserver.Server
	stopping atomic.Bool
	answered atomic.Int64
	lost     atomic.Int64
	wrong    atomic.Int64
	refused  atomic.Int64 // refused connections while the server stops
	enough   chan struct{}
	goal     int64
	once     sync.Once
}

// requests returns constructors of requests to every surface.
func (l *load) requests(base string) []func() *http.Request {
	call := func(method, path, contentType, body string) func() *http.Request {
		return func() *http.Request {
			r, err := http.NewRequestWithContext(l.t.Context(), method, base+path, strings.NewReader(body))
			if err != nil {
				l.t.Error(err)
				return nil
			}
			r.Header.Set("Content-Type", contentType)
			if path != "/oauth/token" {
				r.Header.Set("Authorization", "Bearer "+l.server.Token)
			}
			return r
		}
	}
	return []func() *http.Request{
		call(http.MethodPost, "/admin/rest/topics/v1/public/default/hello/message",
			"application/octet-stream", "hello"),
		call(http.MethodGet, "/subjects", "", ""),
		call(http.MethodGet, "/apis/cloud.vendor.io/v1alpha1/namespaces/default/users", "", ""),
		call(http.MethodPost, "/oauth/token", "application/x-www-form-urlencoded",
			"grant_type=client_credentials&client_id="+l.server.ClientID+"&client_secret="+l.server.ClientSecret),
		call(http.MethodPost, "/admin/rest/topics/v1/public/default/quiet/waiting/message", "", ""), // a long poll
	}
}

// settle records the result of a request and returns false if the client should stop.
func (l *load) settle(what string, response *http.Response, err error) bool {
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		err = errors.Join(err, response.Body.Close())
	}
	switch {
	case err != nil:
		l.lost.Add(1)
		l.t.Errorf("%s: no response: %v", what, err)
		return false
	case response.StatusCode >= 300 && response.StatusCode != http.StatusTooManyRequests:
		l.wrong.Add(1)
		l.t.Errorf("%s: %s", what, response.Status)
	}
	if l.answered.Add(1) == l.goal {
		l.once.Do(func() { close(l.enough) })
	}
	return true
}

// dial returns nil if the server no longer accepts connections.
func (l *load) dial(address string, secure bool) net.Conn {
	conn, err := net.DialTimeout("tcp", address, 20*time.Second)
	if err != nil {
		if !l.stopping.Load() {
			l.lost.Add(1)
			l.t.Errorf("connecting: %v", err)
		}
		l.refused.Add(1)
		return nil
	}
	if !secure {
		return conn
	}
	secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test's own server
	if err := secured.HandshakeContext(l.t.Context()); err != nil {
		l.lost.Add(1)
		l.t.Errorf("TLS handshake on a connection that was accepted: %v", err)
		_ = conn.Close()
		return nil
	}
	return secured
}

// http1 sends requests in sequence, on one connection or on a new connection for each.
func (l *load) http1(base string, next func() *http.Request, keep bool) {
	address, secure := strings.CutPrefix(base, "https://")
	address = strings.TrimPrefix(address, "http://")
	var conn net.Conn
	var in *bufio.Reader
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	for {
		if conn == nil {
			if conn = l.dial(address, secure); conn == nil {
				return
			}
			in = bufio.NewReader(conn)
		}
		request := next()
		err := request.Write(conn)
		var response *http.Response
		if err == nil {
			response, err = http.ReadResponse(in, request)
		}
		if !l.settle(fmt.Sprintf("HTTP/1.1 %s %s %s, keep %t", base, request.Method, request.URL.Path, keep),
			response, err) {
			return
		}
		if response.Close || !keep {
			_ = conn.Close() // requested by the server or by keep
			conn = nil
		}
	}
}

// http2 sends requests over one connection at a time, until the server refuses connections.
func (l *load) http2(base string, next func() *http.Request) {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the test's own server
		Protocols:       new(http.Protocols),
	}
	transport.Protocols.SetHTTP2(true)
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	for {
		request := next()
		response, err := transport.RoundTrip(request)
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" && l.stopping.Load() {
			l.refused.Add(1)
			return
		}
		if !l.settle(fmt.Sprintf("HTTP/2 %s %s %s", base, request.Method, request.URL.Path), response, err) {
			return
		}
	}
}

// watch watches a resource until the server ends the watch.
func (l *load) watch() {
	r := l.requests(l.server.URL)[2]()
	r.URL.RawQuery = "watch=true"
	response, err := http.DefaultTransport.RoundTrip(r)
	l.settle("watch", response, err) // must end without an error
}

// TestFaultStopUnderLoad stops the server repeatedly under load: every request on an accepted
// connection gets a response.
func TestFaultStopUnderLoad(t *testing.T) {
	rounds, perRound := 2, int64(1500)
	if tally.Long() {
		rounds = 20
	}
	fault := tally.Fault{Name: "stop under load"}
	for range rounds {
		server, err := testserver.Start(t.Context(), program(t), t.TempDir(), testserver.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := &load{t: t, server: server, enough: make(chan struct{}), goal: perRound}
		l.prepare()
		var workers sync.WaitGroup
		for _, base := range []string{server.URL, server.HTTPS} {
			for _, next := range l.requests(base) {
				workers.Go(func() { l.http1(base, next, true) })
				workers.Go(func() { l.http1(base, next, false) })
				workers.Go(func() { l.http2(base, next) })
			}
		}
		workers.Go(l.watch)
		select {
		case <-l.enough:
		case <-time.After(time.Minute):
			t.Error("load did not reach its goal within a minute")
		}
		t.Logf("%d requests", l.answered.Load())
		l.stopping.Store(true)
		began := time.Now()
		if err := server.Stop(40 * time.Second); err != nil {
			t.Error(err)
		}
		fault.Recovery = max(fault.Recovery, time.Since(began)) // time until it has stopped
		t.Logf("stopped after %s", time.Since(began))
		workers.Wait()
		t.Logf("all clients have ended after %s", time.Since(began))
		if l.refused.Load() == 0 {
			t.Error("no client got a refused connection")
		}
		fault.Injected++
		fault.Checked += int(l.answered.Load() + l.lost.Load())
		fault.Lost += int(l.lost.Load())
		fault.Wrong += int(l.wrong.Load())
	}
	fault.Record(t)
}

// prepare creates the topics.
func (l *load) prepare() {
	l.t.Helper()
	for _, path := range []string{"hello", "quiet", "quiet/subscription/waiting"} {
		r, err := http.NewRequestWithContext(l.t.Context(), http.MethodPut,
			l.server.URL+"/admin/v2/persistent/public/default/"+path, http.NoBody)
		if err != nil {
			l.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+l.server.Token)
		response, err := http.DefaultClient.Do(r)
		if err != nil || response.StatusCode != http.StatusNoContent {
			l.t.Fatalf("creating %s: %v, %v", path, response, err)
		}
		_ = response.Body.Close() // empty
	}
}
