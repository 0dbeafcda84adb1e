package forwarding_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"freshet/internal/base/web"
	"freshet/internal/ensemble"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/forwarding"
	"freshet/internal/storage/engine"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/test/freeport"
	"freshet/test/tally"
)

// The headers between members. Attackers know them, too.
const (
	headerURI     = "Freshet-Request-Uri"
	headerClient  = "Freshet-Client-Address"
	headerRequest = "Freshet-Request-Id"
	// smallBody is the maximum size of bodies that are read before they are sent.
	smallBody = 64 << 10
)

// receiver is member b, which has its internal port open.
type receiver struct {
	address string
	handler atomic.Pointer[http.Handler]
}

// serve sets the handler that serves forwarded requests instead of the surfaces.
func (b *receiver) serve(handler http.Handler) { b.handler.Store(&handler) }

func (b *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*b.handler.Load()).ServeHTTP(w, r)
}

// noLimit lets a listener accept any number of connections.
type noLimit struct{}

func (noLimit) Apply(l net.Listener) net.Listener { return l }

// requests implements forwarding.Requests as the server does.
type requests struct{}

func (requests) RequestID(r *http.Request) string { return web.RecordOf(r.Context()).RequestID }

func (requests) Refuse(w http.ResponseWriter, r *http.Request, err, _ error) {
	brokerhttp.Refuse(w, r, err)
}

// newMemberPair returns two members. b serves forwarded requests with the handler serves.
func newMemberPair(t *testing.T, serves http.Handler) (a *ensemble.Member, b *receiver) {
	t.Helper()
	addresses, err := freeport.Addresses(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	var list []bundle.Member
	for i, name := range []string{"a", "b", "c"} {
		list = append(list, bundle.Member{Name: name, Internal: addresses[i], Etcd: addresses[i], Log: addresses[i]})
	}
	made, err := bundle.New("https://freshet.example.com", list, []byte("keys"))
	if err != nil {
		t.Fatal(err)
	}
	b = &receiver{address: addresses[1]}
	b.serve(serves)
	other := openMember(t, made, "b")
	failed := make(chan error, 1)
	if err := other.Listen(t.Context(), ensemble.ListenOptions{Limit: noLimit{}, Failed: failed}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case err := <-failed:
			t.Errorf("internal port: %v", err)
		default:
		}
	})
	access := web.NewAccessLog(slog.New(slog.DiscardHandler), web.AccessAll, 0)
	var ending atomic.Bool
	served := web.MiddlewareWithShutdown(b, access, nil, &ending)
	other.Handle(forwarding.Path, forwarding.Handler(served, web.RequestIDHeader))
	return openMember(t, made, "a"), b
}

func openMember(t *testing.T, made *bundle.Ensemble, name string) *ensemble.Member {
	t.Helper()
	dir := t.TempDir()
	certificates := filepath.Join(dir, "members")
	part, err := made.Bundle(name, false)
	if err == nil {
		err = part.Install(bundle.Paths{
			DataDir: dir, CertDir: certificates, EncryptionKeys: filepath.Join(dir, "encryption.key"),
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := ensemble.Open(ensemble.Options{
		Self: name, Members: made.Members, BundleDir: certificates, Log: slog.New(slog.DiscardHandler),
		Requests: requests{}, IntegrityDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// forward sends a request to a member.
func forward(m *ensemble.Member, w http.ResponseWriter, r *http.Request, to string) error {
	return m.Sender(engine.Owner{Member: to, Epoch: 1})(w, r)
}

// publicURL returns the URL of a client port of member a that forwards every request to member
// to.
func publicURL(t *testing.T, a *ensemble.Member, to string) string {
	t.Helper()
	server := httptest.NewServer(web.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := forward(a, w, r, to); err != nil {
			http.Error(w, "not forwarded: "+err.Error(), http.StatusTeapot)
		}
	}), slog.New(slog.DiscardHandler), nil))
	t.Cleanup(server.Close)
	return server.URL
}

func sendRequest(t *testing.T, method, url string, body io.Reader, headers map[string]string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// TestForward checks that a request arrives at the owner as the client sent it, with its
// credentials, and that the owner does not forward it again.
func TestForward(t *testing.T) {
	t.Parallel()
	a, _ := newMemberPair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" { // like every surface
			http.Error(w, "wrong token", http.StatusUnauthorized)
			return
		}
		if !forwarding.Forwarded(r) {
			t.Error("request is not marked as forwarded, so it would be forwarded again")
		}
		text, _ := io.ReadAll(r.Body)
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		w.Header().Set("X-Seen", r.Method+" "+r.RequestURI+" "+r.URL.Path+" "+host+" "+r.Host+" "+r.Header.Get("X-Own"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(text)
	}))
	url := publicURL(t, a, "b")
	for token, want := range map[string]int{
		"good": http.StatusCreated, "bad": http.StatusUnauthorized,
		"": http.StatusUnauthorized,
	} {
		answer := sendRequest(t, http.MethodPost, url+"/topics/a%2Fb/messages?x=1&y=%20", strings.NewReader("hello"),
			map[string]string{"Authorization": "Bearer " + token, "X-Own": "kept"})
		if answer.StatusCode != want {
			t.Errorf("token %q: got %d, want %d", token, answer.StatusCode, want)
		}
		if want != http.StatusCreated {
			continue
		}
		text, _ := io.ReadAll(answer.Body)
		seen := "POST /topics/a%2Fb/messages?x=1&y=%20 /topics/a/b/messages 127.0.0.1 " +
			strings.TrimPrefix(url, "http://") + " kept"
		if got := answer.Header.Get("X-Seen"); got != seen || string(text) != "hello" {
			t.Errorf("got %q and %q, want %q and the body", got, text, seen)
		}
		if ids := answer.Header.Values(web.RequestIDHeader); len(ids) != 1 {
			t.Errorf("got request ids %q, want one", ids)
		}
	}
}

// TestForwardSmall checks that requests with a small or no body use the pool of HTTP/1.1
// connections, and others HTTP/2, and that both stream the response.
func TestForwardSmall(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	a, _ := newMemberPair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Errorf("reading the body: got error %v, want none", err)
		}
		_, _ = fmt.Fprintf(w, "%s %d", r.Proto, n)
		_ = http.NewResponseController(w).Flush()
		<-more
	}))
	url := publicURL(t, a, "b")
	for size, want := range map[int]string{
		0: "HTTP/1.1 0", 5: "HTTP/1.1 5", smallBody: "HTTP/1.1 65536",
		smallBody + 1: "HTTP/2.0 65537",
	} {
		answer := sendRequest(t, http.MethodPost, url+"/x", strings.NewReader(strings.Repeat("x", size)),
			map[string]string{"Expect": "100-continue"})
		got := make([]byte, len(want))
		if _, err := io.ReadFull(answer.Body, got); err != nil || string(got) != want {
			t.Errorf("body of %d bytes: got %q, %v, want %q", size, got, err, want)
		}
		more <- struct{}{}
	}
}

// TestForwardStreams checks that the owner can read a body that the client is still sending,
// and the client a response that the owner is still writing.
func TestForwardStreams(t *testing.T) {
	t.Parallel()
	a, _ := newMemberPair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		part := make([]byte, 3)
		for range 2 {
			if _, err := io.ReadFull(r.Body, part); err != nil {
				t.Errorf("reading the body: got error %v, want none", err)
				return
			}
			_, _ = w.Write(part)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	body, feed := io.Pipe()
	first := make(chan struct{})
	go func() {
		_, _ = feed.Write([]byte("one"))
		<-first
		_, _ = feed.Write([]byte("two"))
		_ = feed.Close()
	}()
	// An HTTP/1 client cannot read before it has sent the body, so the test calls the handler.
	w := &firstWrite{ResponseRecorder: httptest.NewRecorder(), first: first}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://h/x", body)
	handler := web.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := forward(a, w, r, "b"); err != nil {
			t.Errorf("forward: got error %v, want none", err)
		}
	}), slog.New(slog.DiscardHandler), nil)
	handler.ServeHTTP(w, r)
	if got := w.Body.String(); got != "onetwo" {
		t.Errorf("got %q, want both parts", got)
	}
}

// firstWrite closes first when the first bytes of a response are written.
type firstWrite struct {
	*httptest.ResponseRecorder
	first  chan struct{}
	closed bool
}

func (w *firstWrite) Write(b []byte) (int, error) {
	n, err := w.ResponseRecorder.Write(b)
	if !w.closed && n > 0 {
		w.closed = true
		close(w.first)
	}
	return n, err
}

// TestForwardWithoutOwner checks that a request without another owner is not forwarded, and that a
// member that was not reached is distinguished from one that may have handled the request.
func TestForwardWithoutOwner(t *testing.T) {
	t.Parallel()
	a, b := newMemberPair(t, http.NotFoundHandler())
	for _, owner := range []engine.Owner{{}, {Member: "a", Epoch: 1}} {
		if a.Sender(owner) != nil {
			t.Errorf("owner %+v: got a sender, want nil", owner)
		}
	}
	if a.Sender(engine.Owner{Member: "b", Epoch: 1}) == nil {
		t.Error("another member: got no sender, want one")
	}
	for _, err := range []error{engine.ErrNoOwner, engine.ErrNotOwner} { // errors of serving it on this member
		w := httptest.NewRecorder()
		brokerhttp.Refuse(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", http.NoBody),
			fmt.Errorf("shard 3: %w", err))
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%v: got %d with Retry-After %q, want 503 with one", err, w.Code, w.Header().Get("Retry-After"))
		}
	}
	if answer := sendRequest(t, http.MethodGet, publicURL(t, a, "c")+"/x", http.NoBody,
		nil); answer.StatusCode != http.StatusTeapot {
		t.Errorf("member that does not listen: got %d, want an error of forward", answer.StatusCode)
	}
	// A member that aborts the connection may have handled the request.
	b.serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	answer := sendRequest(t, http.MethodPost, publicURL(t, a, "b")+"/x", strings.NewReader("m"), nil)
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusServiceUnavailable ||
		answer.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "member b") {
		t.Errorf("aborted connection: got %d with Retry-After %q: %s; want 503 with the member", answer.StatusCode,
			answer.Header.Get("Retry-After"), text)
	}
}

// TestAttackForward checks that clients cannot forge the headers of forwarded requests, at the
// public port or at the internal one.
func TestAttackForward(t *testing.T) {
	t.Parallel()
	a, b := newMemberPair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.RequestURI+" "+r.RemoteAddr)
		for _, name := range []string{headerURI, headerClient, headerRequest} {
			if r.Header.Get(name) != "" {
				w.Header().Set("X-Hop", name)
			}
		}
	}))
	attempts, successes := 0, 0
	url := publicURL(t, a, "b")
	for _, forged := range []map[string]string{
		{headerURI: "/admin"},
		{headerClient: "10.9.8.7:1"},
		{headerURI: "/admin", headerClient: "10.9.8.7:1", headerRequest: "mine"},
		{strings.ToLower(headerURI): "/admin"},
		{"Connection": headerURI, headerURI: "/admin"},
		{"Connection": headerClient + ", " + headerURI},
		{"X-Forwarded-For": "10.9.8.7", "Forwarded": "for=10.9.8.7"},
	} {
		attempts++
		answer := sendRequest(t, http.MethodGet, url+"/mine", http.NoBody, forged)
		if seen := answer.Header.Get("X-Seen"); !strings.HasPrefix(seen, "/mine 127.0.0.1:") ||
			answer.Header.Get("X-Hop") != "" {
			successes++
			t.Errorf("%v: owner got %q and header %q", forged, seen, answer.Header.Get("X-Hop"))
		}
	}
	// Only clients with a member's certificate reach the internal port.
	for name, certificates := range map[string][]tls.Certificate{
		"no certificate":    nil,
		"another authority": {foreignCertificate(t)},
	} {
		//nolint:gosec // an attacker does not verify the server
		config := &tls.Config{InsecureSkipVerify: true, Certificates: certificates}
		attempts++
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"https://"+b.address+forwarding.Path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(headerURI, "/admin")
		answer, err := client.Do(r)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode < 400 {
				successes++
			}
			t.Errorf("%s: got %d, want no response", name, answer.StatusCode)
		}
	}
	tally.Attack(t, "forged headers between members", attempts, successes)
}

// foreignCertificate returns a certificate of another authority.
func foreignCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	return server.TLS.Certificates[0]
}
