package membership

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/internal/ensemble/bundle"
)

// freezer is a listener whose connections stop reading and writing when it is frozen, and
// stay open.
type freezer struct {
	net.Listener
	frozen, ended chan struct{}
}

func (f *freezer) Accept() (net.Conn, error) {
	conn, err := f.Listener.Accept()
	return &freezing{conn, f}, err
}

type freezing struct {
	net.Conn
	f *freezer
}

func (c *freezing) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wait()
	return n, err
}

func (c *freezing) Write(b []byte) (int, error) {
	c.wait()
	return c.Conn.Write(b)
}

func (c *freezing) wait() {
	select {
	case <-c.f.frozen:
		<-c.f.ended
	default:
	}
}

// testMember is a member that Network calls.
type testMember struct {
	network *Network
	freezer *freezer
}

// newTestMember runs member b with the given protocols.
func newTestMember(t *testing.T, handler http.Handler, protocols ...string) *testMember {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	made, err := bundle.New("https://freshet.example.com", []bundle.Member{
		{Name: "a", Internal: "127.0.0.1:1", Etcd: address, Log: address},
		{Name: "b", Internal: address, Etcd: address, Log: address},
	}, []byte("keys"))
	if err != nil {
		t.Fatal(err)
	}
	credentials := func(name string) *bundle.Credentials {
		dir := t.TempDir()
		part, err := made.Bundle(name, false)
		if err == nil {
			err = part.Install(bundle.Paths{
				DataDir: dir, CertDir: filepath.Join(dir, "members"),
				EncryptionKeys: filepath.Join(dir, "encryption.key"),
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := bundle.Open(filepath.Join(dir, "members"), name)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	o := &testMember{freezer: &freezer{listener, make(chan struct{}), make(chan struct{})}}
	server := &http.Server{
		Handler: handler, TLSConfig: credentials("b").ServerTLS([]string{"a"}, protocols...),
		Protocols: new(http.Protocols),
	}
	server.Protocols.SetHTTP1(slices.Contains(protocols, protocolPooled))
	server.Protocols.SetHTTP2(true)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.ServeTLS(o.freezer, "", "") // returns when it is closed
	}()
	o.network = NewNetwork(credentials("a"), map[string]string{"b": address})
	t.Cleanup(func() {
		close(o.freezer.ended)
		o.network.Close()
		_ = server.Close()
		<-served
	})
	return o
}

// send sends a request and returns the protocol by which it arrived.
func (o *testMember) send(t *testing.T, path string) (string, error) {
	t.Helper()
	pool, ok := o.network.Pool("b")
	if !ok {
		t.Fatal("no pool for member b")
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.network.URL("b", path),
		strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := pool.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if got := string(text); err == nil && got != "hello" {
		t.Errorf("response: got %q, want %q", got, "hello")
	}
	return response.Header.Get("X-Arrived-By"), err
}

// echo returns the request body, on /wait only after release is closed.
func echo(arrived chan<- struct{}, release <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if r.URL.Path == "/wait" {
			arrived <- struct{}{}
			<-release
		}
		w.Header().Set("X-Arrived-By", r.Proto)
		_, _ = w.Write(text)
	})
}

func wantProtocol(t *testing.T, want, got string, err error) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("request arrived by %q, %v, want %s", got, err, want)
	}
}

// TestPool sends requests over HTTP/1.1, and over HTTP/2 when the pool is full.
func TestPool(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, poolConnections), make(chan struct{})
	o := newTestMember(t, echo(arrived, release), protocolHTTP, protocolPooled)
	through, _ := o.network.Pool("b")
	if p, ok := through.(*pool); ok {
		p.dialTimeout = time.Minute // no dial fails because the machine is busy
	}
	for range 2 {
		by, err := o.send(t, "/")
		wantProtocol(t, "HTTP/1.1", by, err)
	}
	var waiting sync.WaitGroup
	for range poolConnections {
		waiting.Go(func() {
			by, err := o.send(t, "/wait")
			wantProtocol(t, "HTTP/1.1", by, err)
		})
	}
	for range poolConnections {
		<-arrived
	}
	by, err := o.send(t, "/")
	wantProtocol(t, "HTTP/2.0", by, err)
	close(release)
	waiting.Wait()
	by, err = o.send(t, "/")
	wantProtocol(t, "HTTP/1.1", by, err)
}

// TestPoolToEarlierVersion sends requests to a member that supports only HTTP/2.
func TestPoolToEarlierVersion(t *testing.T) {
	t.Parallel()
	o := newTestMember(t, echo(nil, nil), protocolHTTP)
	for range 2 {
		by, err := o.send(t, "/")
		wantProtocol(t, "HTTP/2.0", by, err)
	}
}

// TestPoolToSilentMember: when a member becomes unresponsive during a request, the request
// fails long before the connection would time out.
func TestPoolToSilentMember(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 1)
	o := newTestMember(t, echo(arrived, make(chan struct{})), protocolHTTP, protocolPooled)
	o.network.pools["b"].pingInterval = 50 * time.Millisecond
	failed := make(chan error, 1)
	go func() {
		_, err := o.send(t, "/wait")
		failed <- err
	}()
	<-arrived
	close(o.freezer.frozen)
	if err := <-failed; err == nil {
		t.Error("request to an unresponsive member: got a response, want an error")
	}
}
