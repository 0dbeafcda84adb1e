package etcd_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"

	"freshet/internal/controlplane/etcd"
)

// joinRequests are the requests that a member sends to the others before it joins them.
var joinRequests = []string{"/members", "/version", "/downgrade/enabled"}

// requestStatus sends a request to a member's etcd and returns the status code.
func (g *trio) requestStatus(t *testing.T, member, path string, certified bool) (int, error) {
	t.Helper()
	response, err := g.request(t, member, path, certified)
	if err != nil {
		return 0, err
	}
	return response.Code, nil
}

// request sends a request to a member's etcd, with the certificate of member b or without one.
func (g *trio) request(t *testing.T, member, path string, certified bool) (*httptest.ResponseRecorder, error) {
	t.Helper()
	own := g.options["b"]
	info := transport.TLSInfo{TrustedCAFile: own.CAFile}
	if certified {
		info.CertFile, info.KeyFile = own.CertFile, own.KeyFile
	}
	through, err := transport.NewTransport(info, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer through.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // shorter than etcd's timeout for one request
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+g.options[member].Listen+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := through.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	recorded := httptest.NewRecorder()
	maps.Copy(recorded.Header(), response.Header)
	recorded.WriteHeader(response.StatusCode)
	_, err = io.Copy(recorded.Body, response.Body)
	return recorded, err
}

func (g *trio) expectStatus(t *testing.T, member, path string, want int) {
	t.Helper()
	if got, err := g.requestStatus(t, member, path, true); err != nil || got != want {
		t.Errorf("%s at %s: got %d %v, want %d", path, member, got, err, want)
	}
}

// TestPortWithoutData sends requests to a member that has no other member to join. The member must
// respond immediately, because a member that joins at the same time would wait for it.
func TestPortWithoutData(t *testing.T) {
	t.Parallel()
	g, _ := newSeeded(t)
	joined := g.begin(t, "c")
	<-g.waits["c"]
	for _, path := range append([]string{"/raft/probing"}, joinRequests...) {
		g.expectStatus(t, "c", path, http.StatusServiceUnavailable)
	}
	if got, err := g.requestStatus(t, "c", "/members", false); err == nil {
		t.Errorf("without a certificate: got %d, want no response", got)
	}
	g.start(t, "a")
	joined()
	for _, path := range joinRequests {
		g.expectStatus(t, "c", path, http.StatusOK)
	}
	g.stop(t, "c")
	if got, err := g.requestStatus(t, "c", "/members", true); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("stopped member: got %d %v, want its port closed", got, err)
	}
}

// TestPortWithoutMajority sends requests to a seed that lacks a majority until its first joiner has
// started.
func TestPortWithoutMajority(t *testing.T) {
	t.Parallel()
	g, _ := newSeeded(t)
	ready := g.begin(t, "a")
	<-g.waits["a"]
	g.expectStatus(t, "a", "/members", http.StatusOK)
	g.expectStatus(t, "a", "/version", http.StatusOK)
	g.expectStatus(t, "a", "/downgrade/enabled", http.StatusServiceUnavailable)
	g.start(t, "c")
	ready()
	for _, path := range joinRequests {
		g.expectStatus(t, "a", path, http.StatusOK)
	}
}

// TestSeedEndsMeanwhile joins an ensemble whose only reachable member returns the member list and
// then nothing more, as a member does that stops at that moment. The joining member must retry, and
// join when the ensemble is back.
func TestSeedEndsMeanwhile(t *testing.T) {
	t.Parallel()
	g, _ := newSeeded(t)
	g.start(t, "a", "c")
	members, err := g.request(t, "a", "/members", true)
	if err != nil {
		t.Fatal(err)
	}
	g.stop(t, "a", "c")

	own := g.options["a"]
	info := transport.TLSInfo{
		CertFile: own.CertFile, KeyFile: own.KeyFile, TrustedCAFile: own.CAFile,
		ClientCertAuth: true,
	}
	listener, err := transport.NewListener(own.Listen, "https", &info)
	if err != nil {
		t.Fatal(err)
	}
	requested := make(chan struct{}, 1)
	ending := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/members" {
			http.Error(w, "ending", http.StatusServiceUnavailable)
			return
		}
		maps.Copy(w.Header(), members.Header())
		_, _ = w.Write(members.Body.Bytes())
		select {
		case requested <- struct{}{}:
		default:
		}
	}), ReadHeaderTimeout: time.Second}
	go func() { _ = ending.Serve(listener) }()

	joined := g.begin(t, "b")
	<-requested
	select {
	case <-g.waits["b"]:
	case <-time.After(30 * time.Second): // joined reports why b has given up
		joined()
	}
	if err := ending.Close(); err != nil {
		t.Fatal(err)
	}
	g.start(t, "a", "c")
	joined()
	if !g.exists(t, "b", "key-00") {
		t.Error("joined member lacks key-00")
	}
}

// TestPortTaken starts a member whose port is in use.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	g, _ := newSeeded(t)
	taken := g.options["b"]
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", taken.Listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	m, err := etcd.Join(t.Context(), g.dirs["b"], &taken, etcd.Options{Unsafe: true})
	if !errors.Is(err, syscall.EADDRINUSE) {
		if m != nil {
			_ = m.Close()
		}
		t.Errorf("got error %v, want EADDRINUSE", err)
	}
}
