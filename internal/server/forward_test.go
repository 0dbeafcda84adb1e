package server

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
	"testing"

	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/broker/groups"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/storage/engine"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/test/freeport"
	"freshet/test/tally"
)

// newMemberPair returns two members. b has its internal port open and serves forwarded
// requests with the handler serves instead of its surfaces.
func newMemberPair(t *testing.T, serves http.Handler) (a, b *server) {
	t.Helper()
	var list []bundle.Member
	var listed []config.Member
	addresses, err := freeport.Addresses(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b", "c"} {
		address := addresses[i]
		list = append(list, bundle.Member{Name: name, Internal: address, Etcd: address, Log: address})
		listed = append(listed, config.Member{Name: name, Internal: address})
	}
	made, err := bundle.New("https://freshet.example.com", list, []byte("keys"))
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string) *server {
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
		cfg := config.Default()
		cfg.DataDir, cfg.Members.Self, cfg.Members.List = dir, name, listed
		s := &server{
			cfg: cfg, log: slog.New(slog.DiscardHandler), failed: make(chan error, 1),
			access: web.NewAccessLog(slog.New(slog.DiscardHandler), web.AccessAll, 0),
		}
		if err := s.openEnsemble(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, end := range s.closers {
				_ = end()
			}
		})
		return s
	}
	a, b = open("a"), open("b")
	if err := b.openInternal(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.front.Serve(serves)
	b.ensemble.internal.handle(forwardPath, b.forwarded())
	return a, b
}

// publicURL returns the URL of a client port of member a that forwards every request to member
// to.
func publicURL(t *testing.T, a *server, to string) string {
	t.Helper()
	server := httptest.NewServer(web.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.forward(w, r, to); err != nil {
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
	var b *server
	a, b := newMemberPair(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" { // like every surface
			http.Error(w, "wrong token", http.StatusUnauthorized)
			return
		}
		sentOn := b.ownerOf(nil)(r, topicOf(t)) != nil || b.coordinatorOf(nil)(r, consumerGroup()) != nil
		others, known, err := b.coordinatorsOf(nil)(r)
		if sentOn || !known || len(others) > 0 || err != nil {
			t.Errorf("forwarded request would be forwarded again: %t, %d, %v", sentOn, len(others), err)
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
		0: "HTTP/1.1 0", 5: "HTTP/1.1 5", replayBytes: "HTTP/1.1 65536",
		replayBytes + 1: "HTTP/2.0 65537",
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
		if err := a.forward(w, r, "b"); err != nil {
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
		if a.sender(owner) != nil {
			t.Errorf("owner %+v: got a sender, want nil", owner)
		}
	}
	if a.sender(engine.Owner{Member: "b", Epoch: 1}) == nil {
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
	b.front.Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
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
	own, _ := b.cfg.Members.Own()
	for name, certificates := range map[string][]tls.Certificate{
		"no certificate":    nil,
		"another authority": {foreignCertificate(t)},
	} {
		//nolint:gosec // an attacker does not verify the server
		config := &tls.Config{InsecureSkipVerify: true, Certificates: certificates}
		attempts++
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"https://"+own.Internal+forwardPath, http.NoBody)
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

func topicOf(t *testing.T) names.Topic {
	t.Helper()
	topic, err := names.ParseTopic("persistent://public/default/t")
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

func consumerGroup() groups.Key { return groups.Key{Tenant: "public", Group: "g"} }
