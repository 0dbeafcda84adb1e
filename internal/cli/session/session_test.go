package session

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// issuer is a token endpoint with single-use refresh tokens: a second use of one ends the
// session.
type issuer struct {
	mu      sync.Mutex // protects the fields below
	renewed int
	ended   bool
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended || r.FormValue("refresh_token") != fmt.Sprintf("r%d", i.renewed) {
		i.ended = true
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"over"}`)
		return
	}
	i.renewed++
	_ = json.NewEncoder(w).Encode(tokenResponse{
		AccessToken: fmt.Sprintf("a%d", i.renewed), ExpiresIn: 600,
		RefreshToken: fmt.Sprintf("r%d", i.renewed), RefreshExpiresIn: 3600,
	})
}

// TestManyRenewOneSession checks that concurrent sources do not reuse a refresh token. Each
// source opens the lock file itself, as separate processes do.
func TestManyRenewOneSession(t *testing.T) {
	t.Parallel()
	i := &issuer{}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "credentials", "ann")
	if _, err := Store(t.Context(), path,
		&Session{Server: server.URL, Principal: "user:ann", RefreshToken: "r0"}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				source, _ := Source(path).(client.Invalidator)
				token, err := source.Token(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				source.Invalidate(token) // forces a renewal
				if next, err := source.Token(t.Context()); err != nil || next.Value == token.Value {
					t.Errorf("after Invalidate: got %q, %v; want another token than %q", next.Value, err, token.Value)
					return
				}
			}
		})
	}
	all.Wait()
	if i.ended || i.renewed < 2 {
		t.Errorf("renewed %d times, session ended: %v; want several renewals and a live session", i.renewed, i.ended)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: got %v, %v; want mode 0600", info, err)
	}
	i.ended = true
	source, _ := Source(path).(client.Invalidator)
	token, err := source.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	source.Invalidate(token)
	if _, err := source.Token(t.Context()); errs.KindOf(err) != errs.Unauthenticated ||
		!strings.Contains(hint.Of(err), "freshet login") {
		t.Errorf("a session that has ended: got %v (%s), want a hint to sign in", err, hint.Of(err))
	}
}

// TestALostResponseDoesNotEndTheSession checks that a renewal without a response is retried
// with the same refresh token.
func TestALostResponseDoesNotEndTheSession(t *testing.T) {
	t.Parallel()
	var requested []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested = append(requested, r.FormValue("refresh_token"))
		if len(requested) < 3 {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		_ = json.NewEncoder(w).Encode(tokenResponse{
			AccessToken: "a1", ExpiresIn: 600, RefreshToken: "r1",
			RefreshExpiresIn: 3600,
		})
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "credentials", "ann")
	if _, err := Store(t.Context(), path,
		&Session{Server: server.URL, Principal: "user:ann", RefreshToken: "r0"}); err != nil {
		t.Fatal(err)
	}
	token, err := Source(path).Token(t.Context())
	if err != nil || token.Value != "a1" || fmt.Sprint(requested) != "[r0 r0 r0]" {
		t.Errorf("got %q, %v after requests with %v; want a1 after three times r0", token.Value, err, requested)
	}
	if stored, err := Read(path); err != nil || stored.RefreshToken != "r1" {
		t.Errorf("stored %v, %v; want the next refresh token", stored, err)
	}
}

// scriptedTransport responds to each request with the next of its answers, and records the times of
// the requests.
type scriptedTransport struct {
	responses    []string
	requestTimes []time.Duration
	started      time.Time
}

func (s *scriptedTransport) RoundTrip(*http.Request) (*http.Response, error) {
	s.requestTimes = append(s.requestTimes, time.Since(s.started))
	text := s.responses[min(len(s.requestTimes), len(s.responses))-1]
	if text == "" {
		return nil, io.ErrUnexpectedEOF
	}
	status := http.StatusOK
	if !strings.HasPrefix(text, "{") {
		status, text = http.StatusBadRequest, `{"error":"`+text+`"}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

// TestWaitPollingInterval checks the polling interval, and the responses that end polling.
func TestWaitPollingInterval(t *testing.T) {
	t.Parallel()
	const tokens = `{"access_token":"a","refresh_token":"r","expires_in":600,"refresh_token_expires_in":60}`
	for name, tc := range map[string]struct {
		answers []string
		asked   string
		err     string
	}{
		"signed in":   {[]string{"authorization_pending", "authorization_pending", tokens}, "[5s 10s 15s]", ""},
		"slow down":   {[]string{"slow_down", "authorization_pending", tokens}, "[5s 15s 25s]", ""},
		"no response": {[]string{"", tokens}, "[5s 15s]", ""},
		"denied":      {[]string{"authorization_pending", "access_denied"}, "[5s 10s]", "denied"},
		"expired":     {[]string{"expired_token"}, "[5s]", "code expired"},
		"no decision": {
			[]string{"slow_down", "slow_down", "slow_down", "authorization_pending"},
			"[5s 15s 30s 50s]",
			"code expired",
		},
		"used": {[]string{"invalid_grant"}, "[5s]", "invalid_grant"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedTransport{responses: tc.answers, started: time.Now()}
			d := &Device{
				code: "c", interval: 5 * time.Second, ends: time.Now().Add(time.Minute),
				session: Session{Server: "http://x", transport: s},
			}
			got, err := d.Wait(t.Context())
			if fmt.Sprint(s.requestTimes) != tc.asked || (err == nil) != (tc.err == "") || err != nil &&
				!strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: requests after %v, %v; want %s, %q", name, s.requestTimes, err, tc.asked, tc.err)
			}
			if err == nil && (got.AccessToken != "a" || got.RefreshToken != "r" || got.Ends.IsZero()) {
				t.Errorf("%s: got %v without its tokens", name, got)
			}
		})
	}
}

// TestBeginRejectsOtherPages checks that Begin accepts only http and https pages, because the
// page may be opened in a browser.
func TestBeginRejectsOtherPages(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]bool{
		"https://x/oauth/device": true, "file:///etc/passwd": false,
		"--help": false, "": false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{
				"device_code": "d", "user_code": "ABCD-EFGH",
				"verification_uri": page, "expires_in": 600,
			})
		}))
		if _, err := Begin(t.Context(), server.URL, ""); (err == nil) != want {
			t.Errorf("%s: got %v, want it accepted: %v", url.QueryEscape(page), err, want)
		}
		server.Close()
	}
}
