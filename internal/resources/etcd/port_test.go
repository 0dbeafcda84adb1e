package etcd_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"

	"freshet/internal/resources/etcd"
)

// What a member asks the others before it joins them.
var questions = []string{"/members", "/version", "/downgrade/enabled"}

// ask asks a member's etcd as another member does, or as somebody without a certificate.
func (g *trio) ask(t *testing.T, member, path string, certified bool) (int, error) {
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
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // less than etcd's patience with one question
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+g.options[member].Listen+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := through.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func (g *trio) answers(t *testing.T, member, path string, want int) {
	t.Helper()
	if got, err := g.ask(t, member, path, true); err != nil || got != want {
		t.Errorf("%s at %s: got %d %v, want %d", path, member, got, err, want)
	}
}

// TestPortWithoutData asks a member that has nobody to join: it answers at once, or who
// joins at the same moment would wait for it.
func TestPortWithoutData(t *testing.T) {
	t.Parallel()
	g, _ := newSeeded(t)
	joined := g.begin(t, "c")
	<-g.waits["c"]
	for _, path := range append([]string{"/raft/probing"}, questions...) {
		g.answers(t, "c", path, http.StatusServiceUnavailable)
	}
	if got, err := g.ask(t, "c", "/members", false); err == nil {
		t.Errorf("without a certificate: got %d, want no answer", got)
	}
	g.start(t, "a")
	joined()
	for _, path := range questions {
		g.answers(t, "c", path, http.StatusOK)
	}
	g.stop(t, "c")
	if got, err := g.ask(t, "c", "/members", true); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a member that has ended: got %d %v, want its port closed", got, err)
	}
}

// TestPortWithoutMajority asks a seed whose first joiner is the majority that it lacks.
func TestPortWithoutMajority(t *testing.T) {
	t.Parallel()
	g, _ := newSeeded(t)
	ready := g.begin(t, "a")
	<-g.waits["a"]
	g.answers(t, "a", "/members", http.StatusOK)
	g.answers(t, "a", "/version", http.StatusOK)
	g.answers(t, "a", "/downgrade/enabled", http.StatusServiceUnavailable)
	g.start(t, "c")
	ready()
	for _, path := range questions {
		g.answers(t, "a", path, http.StatusOK)
	}
}

// TestPortTaken starts a member whose port is another's.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	g, _ := newSeeded(t)
	taken := g.options["b"]
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", taken.Listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	m, err := etcd.Start(t.Context(), g.dirs["b"], etcd.Options{Unsafe: true, Group: &taken})
	if !errors.Is(err, syscall.EADDRINUSE) {
		if m != nil {
			_ = m.Close()
		}
		t.Errorf("got %v, want that the address is in use", err)
	}
}
