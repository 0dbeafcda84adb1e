package chaos

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"freshet/test/ensemble/history"
	"freshet/test/ensemble/load"
	"freshet/test/testserver"
)

// faultyProxy is a proxy in front of a server that violates the server's guarantees. Each kind of request has
// its own counter, so that a slow machine with few requests meets every fault, too.
type faultyProxy struct {
	http.Handler
	first, second, acknowledged, schemas atomic.Int64 // requests: produce to load-0 and to load-1, PUT, subjects
}

// ServeHTTP returns a wrong response to some requests and forwards the others.
func (l *faultyProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	produces := r.Method == http.MethodPost &&
		strings.HasPrefix(r.URL.Path, "/admin/rest/topics/v1/public/default/load-") &&
		strings.Count(r.URL.Path, "/") == 8
	switch {
	case produces && strings.Contains(r.URL.Path, "/load-0/"):
		l.produceToFirst(w, r)
	case produces:
		l.produceToSecond(w, r)
	// drops an acknowledgement
	case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/shared/messages") &&
		l.acknowledged.Add(1)%faultEvery == 0:
		w.WriteHeader(http.StatusNoContent)
	// returns the same schema id for every schema
	case strings.Contains(r.URL.Path, "/subjects/") && l.schemas.Add(1)%2 == 0:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":1}`)
	case strings.HasSuffix(r.URL.Path, "/serviceaccounts") && r.Method == http.MethodGet: // accepts every key
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/name-"): // removes nothing
		w.WriteHeader(http.StatusNoContent)
	default:
		l.Handler.ServeHTTP(w, r)
	}
}

// faultEvery is the number of requests of a kind after which a fault occurs again.
const faultEvery = 10

// produceToFirst acknowledges some messages without storing them, and stores others in another topic.
func (l *faultyProxy) produceToFirst(w http.ResponseWriter, r *http.Request) {
	switch l.first.Add(1) % faultEvery {
	case 2:
		w.Header().Set("X-Msg-Message-String-Id", "1:1000000:0:0")
		w.WriteHeader(http.StatusCreated)
		return
	case 4:
		r.URL.Path = strings.Replace(r.URL.Path, "/load-0/", "/load-1/", 1)
	}
	l.Handler.ServeHTTP(w, r)
}

// produceToSecond stores some messages twice and changes others.
func (l *faultyProxy) produceToSecond(w http.ResponseWriter, r *http.Request) {
	n := l.second.Add(1) % faultEvery
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if n == 2 {
		again := r.Clone(r.Context())
		again.Header.Del("Idempotency-Key")
		again.Body = io.NopCloser(bytes.NewReader(body))
		l.Handler.ServeHTTP(httptest.NewRecorder(), again)
	}
	if n == 4 {
		body[len(body)-20] ^= 1
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	l.Handler.ServeHTTP(w, r)
}

// TestViolationsAreFound checks that the clients and the history check together detect every
// violated guarantee of a server that otherwise works.
func TestViolationsAreFound(t *testing.T) {
	t.Parallel()
	m, err := newMember(t.Context(), "liar", binary, t.TempDir(), testserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Kill()
	target, err := url.Parse(m.URL)
	if err != nil {
		t.Fatal(err)
	}
	honest := httputil.NewSingleHostReverseProxy(target)
	honest.ErrorLog = log.New(io.Discard, "", 0)
	front := httptest.NewServer(&faultyProxy{Handler: honest})
	defer front.Close()
	m.URL = front.URL
	run := &Run{
		Members: []*Member{m}, Load: load.Options{Token: m.Token(), Topics: 2, Pause: 15 * time.Millisecond},
		Plan: Plan{Seed: seed(t), Quiet: 3 * time.Second}, DrainTimeout: 4 * time.Second,
	}
	result, err := run.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{
		"every acknowledged message is delivered", "a message is stored once",
		"an acknowledged message is not delivered again",
		"a message is delivered under its own topic and partition", "content damaged",
		"an id belongs to one schema", "no key works after its revocation has returned",
		"calls on a name are linearizable",
	} {
		if !slices.ContainsFunc(result.Violations, func(v history.Violation) bool { return v.Rule == rule }) {
			t.Errorf("faulty server: got no violation of %q, want one", rule)
		}
	}
}
