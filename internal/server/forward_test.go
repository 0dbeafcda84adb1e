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

// pairOfMembers are two members with their internal ports open: what a sends on, b
// serves with a handler of the test in place of its surfaces.
func pairOfMembers(t *testing.T, serves http.Handler) (a, b *server) {
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
			err = part.Install(bundle.Places{
				DataDir: dir, Bundle: filepath.Join(dir, "members"),
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
		if err := s.openGroup(t.Context()); err != nil {
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
	b.front.serve(serves)
	b.group.internal.handle(forwardPath, b.forwarded())
	return a, b
}

// public is a member's port for clients, where every request is b's.
func public(t *testing.T, a *server, to string) string {
	t.Helper()
	server := httptest.NewServer(web.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.forward(w, r, to); err != nil {
			http.Error(w, "not reached: "+err.Error(), http.StatusTeapot)
		}
	}), slog.New(slog.DiscardHandler), nil))
	t.Cleanup(server.Close)
	return server.URL
}

func ask(t *testing.T, method, url string, body io.Reader, headers map[string]string) *http.Response {
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

// TestForward: a request arrives at the owner as the client sent it, credentials
// included, and its surfaces serve it as any other. It goes no further from there.
func TestForward(t *testing.T) {
	t.Parallel()
	var b *server
	a, b := pairOfMembers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" { // as every surface does
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		sentOn := b.ownerOf(nil)(r, topicOf(t)) != nil || b.coordinatorOf(nil)(r, groupOf()) != nil
		others, known, err := b.coordinatorsOf(nil)(r)
		if sentOn || !known || len(others) > 0 || err != nil {
			t.Errorf("a request that was sent on would be sent on again: %t, %d, %v", sentOn, len(others), err)
		}
		text, _ := io.ReadAll(r.Body)
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		w.Header().Set("X-Seen", r.Method+" "+r.RequestURI+" "+r.URL.Path+" "+host+" "+r.Host+" "+r.Header.Get("X-Own"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(text)
	}))
	url := public(t, a, "b")
	for token, want := range map[string]int{
		"good": http.StatusCreated, "bad": http.StatusUnauthorized,
		"": http.StatusUnauthorized,
	} {
		answer := ask(t, http.MethodPost, url+"/topics/a%2Fb/messages?x=1&y=%20", strings.NewReader("hello"),
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

// TestForwardSmall: small bodies and none go by the cheaper way, others do not; either
// way an answer is read while the owner still writes it.
func TestForwardSmall(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	a, _ := pairOfMembers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Errorf("reading the body: got error %v, want none", err)
		}
		_, _ = fmt.Fprintf(w, "%s %d", r.Proto, n)
		_ = http.NewResponseController(w).Flush()
		<-more
	}))
	url := public(t, a, "b")
	for size, want := range map[int]string{
		0: "HTTP/1.1 0", 5: "HTTP/1.1 5", replayBytes: "HTTP/1.1 65536",
		replayBytes + 1: "HTTP/2.0 65537",
	} {
		answer := ask(t, http.MethodPost, url+"/x", strings.NewReader(strings.Repeat("x", size)),
			map[string]string{"Expect": "100-continue"})
		got := make([]byte, len(want))
		if _, err := io.ReadFull(answer.Body, got); err != nil || string(got) != want {
			t.Errorf("body of %d bytes: arrived as %q, %v, want %q", size, got, err, want)
		}
		more <- struct{}{}
	}
}

// TestForwardStreams: the owner reads a body while the client still sends it, and the
// client reads an answer while the owner still writes it.
func TestForwardStreams(t *testing.T) {
	t.Parallel()
	a, _ := pairOfMembers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	// An HTTP/1 client may not read before it has written; this one is a server's.
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

// firstWrite tells of the first bytes of an answer.
type firstWrite struct {
	*httptest.ResponseRecorder
	first chan struct{}
	told  bool
}

func (w *firstWrite) Write(b []byte) (int, error) {
	n, err := w.ResponseRecorder.Write(b)
	if !w.told && n > 0 {
		w.told = true
		close(w.first)
	}
	return n, err
}

// TestForwardToNobody: without an owner a request is served here, where it waits; a
// member that is not there is told apart from one that may have done something.
func TestForwardToNobody(t *testing.T) {
	t.Parallel()
	a, b := pairOfMembers(t, http.NotFoundHandler())
	for _, owner := range []engine.Owner{{}, {Member: "a", Epoch: 1}} {
		if a.sender(owner) != nil {
			t.Errorf("owner %+v: got a sender, want the request served here", owner)
		}
	}
	if a.sender(engine.Owner{Member: "b", Epoch: 1}) == nil {
		t.Error("another member: got no sender, want one")
	}
	for _, err := range []error{engine.ErrNoOwner, engine.ErrNotOwner} { // what whoever serves it here hears at the end
		w := httptest.NewRecorder()
		brokerhttp.Refuse(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", http.NoBody),
			fmt.Errorf("shard 3: %w", err))
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%v: got %d with Retry-After %q, want 503 with one", err, w.Code, w.Header().Get("Retry-After"))
		}
	}
	if answer := ask(t, http.MethodGet, public(t, a, "c")+"/x", http.NoBody,
		nil); answer.StatusCode != http.StatusTeapot {
		t.Errorf("a member that does not listen: got %d, want that it was not reached", answer.StatusCode)
	}
	// One that breaks the connection off may have done it.
	b.front.serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	answer := ask(t, http.MethodPost, public(t, a, "b")+"/x", strings.NewReader("m"), nil)
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusServiceUnavailable ||
		answer.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "member b") {
		t.Errorf("a broken connection: got %d with Retry-After %q: %s; want 503 that says so", answer.StatusCode,
			answer.Header.Get("Retry-After"), text)
	}
}

// TestAttackForward: clients cannot make a member believe what only members may say, be
// it at the public port or at the internal one.
func TestAttackForward(t *testing.T) {
	t.Parallel()
	a, b := pairOfMembers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.RequestURI+" "+r.RemoteAddr)
		for _, name := range []string{headerURI, headerClient, headerRequest} {
			if r.Header.Get(name) != "" {
				w.Header().Set("X-Hop", name)
			}
		}
	}))
	attempts, successes := 0, 0
	url := public(t, a, "b")
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
		answer := ask(t, http.MethodGet, url+"/mine", http.NoBody, forged)
		if seen := answer.Header.Get("X-Seen"); !strings.HasPrefix(seen, "/mine 127.0.0.1:") ||
			answer.Header.Get("X-Hop") != "" {
			successes++
			t.Errorf("%v: the owner saw %q and header %q", forged, seen, answer.Header.Get("X-Hop"))
		}
	}
	// Nobody without a member's certificate reaches the internal port.
	own, _ := b.cfg.Members.Own()
	for name, config := range map[string]*tls.Config{
		"no certificate":    {InsecureSkipVerify: true},                                               //nolint:gosec // the attacker does not care
		"another authority": {InsecureSkipVerify: true, Certificates: []tls.Certificate{stranger(t)}}, //nolint:gosec // as above
	} {
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
			t.Errorf("%s: got %d, want no answer", name, answer.StatusCode)
		}
	}
	tally.Attack(t, "forged headers between members", attempts, successes)
}

// stranger is a certificate of somebody's own authority.
func stranger(t *testing.T) tls.Certificate {
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

func groupOf() groups.Key { return groups.Key{Tenant: "public", Group: "g"} }
