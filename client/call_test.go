package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"freshet.dev/client"
)

// roundTripper is a server without a network, so that a test can run in a synctest bubble.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// responses returns the responses of list in order, repeats the last one, and counts the calls.
type responses struct {
	mu    sync.Mutex
	list  []response
	count int
}

type response struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a *responses) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.list[min(a.count, len(a.list)-1)]
	a.count++
	if next.err != nil {
		return nil, next.err
	}
	recorder := httptest.NewRecorder()
	for name, values := range next.header {
		recorder.Header()[name] = values
	}
	recorder.WriteHeader(next.status)
	_, _ = recorder.WriteString(next.body)
	response := recorder.Result()
	response.Request = r
	return response, nil
}

func newClient(t *testing.T, config client.Config) *client.Client {
	t.Helper()
	if config.BaseURL == "" {
		config.BaseURL = "http://server.test"
	}
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestErrorsOfEverySurface(t *testing.T) {
	t.Parallel()
	scope := http.Header{"Www-Authenticate": {`Bearer realm="messages", error="insufficient_scope"`}}
	for _, c := range []struct {
		name   string
		answer response
		want   client.Error
		is     error
	}{
		{
			"messages",
			response{404, nil, `{"reason":"topic t does not exist"}`, nil},
			client.Error{Status: 404, Code: 404, Message: "topic t does not exist"},
			client.ErrNotFound,
		},
		{
			"messages, no permission",
			response{401, scope, `{"reason":"no"}`, nil},
			client.Error{Status: 401, Code: 401, Message: "no"},
			client.ErrDenied,
		},
		{
			"messages, no token",
			response{401, nil, `{"reason":"no"}`, nil},
			client.Error{Status: 401, Code: 401, Message: "no"},
			client.ErrUnauthenticated,
		},
		{
			"messages, quota",
			response{403, nil, `{"reason":"exceeded quota: topics"}`, nil},
			client.Error{Status: 403, Code: 403, Message: "exceeded quota: topics"},
			client.ErrQuota,
		},
		{
			"registry",
			response{404, nil, `{"error_code":40401,"message":"Subject 'a' not found."}`, nil},
			client.Error{Status: 404, Code: 40401, Message: "Subject 'a' not found."},
			client.ErrNotFound,
		},
		{
			"registry, quota",
			response{403, nil, `{"error_code":40302,"message":"used up"}`, nil},
			client.Error{Status: 403, Code: 40302, Message: "used up"},
			client.ErrQuota,
		},
		{
			"registry, incompatible",
			response{409, nil, `{"error_code":409,"message":"incompatible"}`, nil},
			client.Error{Status: 409, Code: 409, Message: "incompatible"},
			client.ErrConflict,
		},
		{
			"resources",
			response{409, nil, `{"kind":"Status","reason":"AlreadyExists","message":"there","code":409}`, nil},
			client.Error{Status: 409, Code: 409, Reason: "AlreadyExists", Message: "there"},
			client.ErrConflict,
		},
		{
			"tokens",
			response{401, nil, `{"error":"invalid_client","error_description":"no such client"}`, nil},
			client.Error{Status: 401, Code: 401, Reason: "invalid_client", Message: "no such client"},
			client.ErrUnauthenticated,
		},
		{
			"too large",
			response{413, nil, `{"reason":"large"}`, nil},
			client.Error{Status: 413, Code: 413, Message: "large"},
			client.ErrTooLarge,
		},
		{
			"a proxy",
			response{422, nil, "<html>", nil},
			client.Error{Status: 422, Code: 422, Message: "<html>"},
			client.ErrInvalid,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := newClient(t, client.Config{Transport: &responses{list: []response{c.answer}}})
			_, err := conn.Do(t.Context(), &client.Request{Method: http.MethodGet, Path: "/x"})
			var got *client.Error
			if !errors.As(err, &got) {
				t.Fatalf("error: got %v, want an *Error", err)
			}
			if got.Status != c.want.Status || got.Code != c.want.Code || got.Reason != c.want.Reason ||
				got.Message != c.want.Message {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if !errors.Is(err, c.is) {
				t.Errorf("%v: want it to be %v", err, c.is)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	busy := response{status: 503, body: `{"reason":"busy"}`}
	slow := response{status: 429, body: `{"reason":"slow down"}`, header: http.Header{"Retry-After": {"7"}}}
	broken := response{err: errors.New("connection reset by peer")}
	ok := response{status: 200}
	for _, c := range []struct {
		name      string
		request   client.Request
		answers   []response
		attempts  int
		want      error
		atLeast   time.Duration
		different int // MaxAttempts
	}{
		{"GET, busy", client.Request{Method: "GET"}, []response{busy, busy, ok}, 3, nil, 0, 0},
		{"POST, busy", client.Request{Method: "POST"}, []response{busy, ok}, 1, client.ErrUnavailable, 0, 0},
		{"idempotent POST, busy", client.Request{Method: "POST", Idempotent: true}, []response{busy, ok}, 2, nil, 0, 0},
		{"POST, too many", client.Request{Method: "POST"}, []response{slow, ok}, 2, nil, 7 * time.Second, 0},
		{"POST, broken", client.Request{Method: "POST"}, []response{broken, ok}, 1, client.ErrUnavailable, 0, 0},
		{
			"idempotent POST, broken",
			client.Request{Method: "POST", Idempotent: true},
			[]response{broken, ok},
			2, nil, 0, 0,
		},
		{"GET, always broken", client.Request{Method: "GET"}, []response{broken}, 5, client.ErrUnavailable, 0, 0},
		{"GET, no retry", client.Request{Method: "GET"}, []response{busy, ok}, 1, client.ErrUnavailable, 0, 1},
		{"GET, not found", client.Request{Method: "GET"}, []response{{status: 404}, ok}, 1, client.ErrNotFound, 0, 0},
		{
			"GET, an hour",
			client.Request{Method: "GET"},
			[]response{{status: 503, header: http.Header{"Retry-After": {"3600"}}}, ok},
			1, client.ErrUnavailable, 0, 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &responses{list: c.answers}
				conn := newClient(t, client.Config{Transport: server, MaxAttempts: c.different})
				begin := time.Now()
				c.request.Path = "/x"
				_, err := conn.Do(t.Context(), &c.request)
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
					t.Errorf("error: got %v, want %v", err, c.want)
				}
				if server.count != c.attempts {
					t.Errorf("attempts: got %d, want %d", server.count, c.attempts)
				}
				if waited := time.Since(begin); waited < c.atLeast || waited > 30*time.Second {
					t.Errorf("waited %s, want at least %s and at most 30s", waited, c.atLeast)
				}
			})
		})
	}
}

func TestContextEndsRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := newClient(t, client.Config{Transport: &responses{list: []response{{status: 503}}}, MaxAttempts: 1000})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := conn.Do(ctx, &client.Request{Method: http.MethodGet, Path: "/x"})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("got %v, want DeadlineExceeded and ErrUnavailable", err)
		}
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	server := &responses{list: []response{{status: 302, header: http.Header{"Location": {"http://elsewhere.test/"}}}}}
	conn := newClient(t, client.Config{Transport: server, TokenSource: client.StaticToken("secret")})
	_, err := conn.Do(t.Context(), &client.Request{Method: http.MethodGet, Path: "/x"})
	var got *client.Error
	if !errors.As(err, &got) || got.Status != 302 || server.count != 1 {
		t.Errorf("got %v after %d calls, want the redirect itself after 1", err, server.count)
	}
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var issued atomic.Int32
		fail := atomic.Bool{}
		endpoint := roundTripper(func(r *http.Request) (*http.Response, error) {
			if fail.Load() {
				return nil, errors.New("no route to host")
			}
			recorder := httptest.NewRecorder()
			if r.FormValue("client_secret") != "s" || r.URL.String() != "http://issuer.test/oauth/token" {
				t.Errorf("token request to %s with client secret %q", r.URL, r.FormValue("client_secret"))
			}
			_, _ = fmt.Fprintf(recorder, `{"access_token":"t%d","expires_in":600}`, issued.Add(1))
			return recorder.Result(), nil
		})
		source, err := client.ClientCredentials(client.Credentials{
			ClientID: "c", ClientSecret: "s",
			IssuerURL: "http://issuer.test/",
		}, client.CredentialsOptions{Transport: endpoint})
		if err != nil {
			t.Fatal(err)
		}
		var together sync.WaitGroup
		for range 50 {
			together.Go(func() {
				if token, err := source.Token(t.Context()); err != nil || token.Value != "t1" {
					t.Errorf("got %q, %v, want t1", token.Value, err)
				}
			})
		}
		together.Wait()
		time.Sleep(541 * time.Second)
		if token, err := source.Token(t.Context()); err != nil || token.Value != "t2" {
			t.Errorf("one minute before the token expires: got %q, %v, want t2", token.Value, err)
		}
		fail.Store(true)
		time.Sleep(550 * time.Second)
		if token, err := source.Token(t.Context()); err != nil || token.Value != "t2" {
			t.Errorf("endpoint unreachable, token still valid: got %q, %v, want t2", token.Value, err)
		}
		time.Sleep(time.Minute)
		if token, err := source.Token(t.Context()); err == nil {
			t.Errorf("endpoint unreachable, token expired: got %q, want an error", token.Value)
		}
		if got := issued.Load(); got != 2 {
			t.Errorf("the endpoint issued %d tokens, want 2", got)
		}
	})
}

func TestRejectedTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	write := func(value string) {
		if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	var seen []string
	server := roundTripper(func(r *http.Request) (*http.Response, error) {
		seen = append(seen, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		recorder := httptest.NewRecorder()
		if seen[len(seen)-1] != "new" {
			write("new")
			recorder.WriteHeader(http.StatusUnauthorized)
		}
		return recorder.Result(), nil
	})
	conn := newClient(t, client.Config{Transport: server, TokenSource: client.FileToken(path)})
	if _, err := conn.Do(t.Context(), &client.Request{Method: http.MethodPost, Path: "/x"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, " "); got != "old new" {
		t.Errorf("tokens sent: got %q, want %q", got, "old new")
	}
}

// TestInvalidHeaderValues: values that an HTTP header cannot contain are an error immediately, without a request and
// without retries.
func TestInvalidHeaderValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		token string
		key   string
		want  error
	}{
		"a token of two lines":      {"first\nsecond", "", client.ErrUnauthenticated},
		"a key with a control byte": {"token", "a\x00b", client.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &responses{list: []response{{status: 201}}}
				conn := newClient(t, client.Config{Transport: server, TokenSource: client.StaticToken(c.token)})
				p := conn.Topic("t").NewProducer(client.ProducerOptions{})
				begin := time.Now()
				_, err := p.Produce(t.Context(), client.Message{Value: []byte("v"), IdempotencyKey: c.key})
				if !errors.Is(err, c.want) || server.count != 0 || time.Since(begin) > time.Second {
					t.Errorf("got %v after %d calls and %s, want %v within 1 s and without a call", err, server.count,
						time.Since(begin), c.want)
				}
				if err := p.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		client.Token{Value: "hush"},
		client.Credentials{ClientID: "c", ClientSecret: "hush"},
	} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			if text := fmt.Sprintf(format, value); strings.Contains(text, "hush") {
				t.Errorf("%s of %T shows the secret: %s", format, value, text)
			}
		}
	}
	if text, err := json.Marshal(client.Token{Value: "hush"}); err == nil && strings.Contains(string(text), "hush") {
		t.Errorf("JSON of a Token shows its value: %s", text)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, config := range []client.Config{
		{},
		{BaseURL: "server:8080"},
		{BaseURL: "http://u:p@server"},
		{BaseURL: "http://server?x=y"},
		{BaseURL: "http://server", Cluster: "prod"},
		{BaseURL: "http://server", Organization: "acme"},
		{BaseURL: "http://server", CA: []byte("no PEM")},
	} {
		if _, err := client.New(config); err == nil {
			t.Errorf("%+v: got no error", config)
		}
	}
	c := newClient(t, client.Config{BaseURL: "http://server/", Organization: "acme", Cluster: "prod"})
	if got, want := c.BaseURL()+c.ClusterPath("/admin/v2"), "http://server/clusters/acme/prod/admin/v2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
