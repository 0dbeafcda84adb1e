package tokenapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
	"freshet/internal/surfaces/tokenapi"
	"freshet/test/tally"
)

func from(address string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = address }
}

func TestRequestsAreLimitedPerClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *tokenapi.Options) { o.Limits.Client = tokenapi.Rate{PerSecond: 0.1, Burst: 5} })
		_, other := f.Account("acme", "other")
		body := jsonBody(f.fields(base))
		for i := range 5 {
			if w := f.post("application/json", body, from(fmt.Sprintf("192.0.2.%d:1", i))); w.Code != 200 {
				t.Fatalf("request %d: status %d, want 200", i, w.Code)
			}
		}
		w := f.post("application/json", body, from("192.0.2.99:1"))
		if w.Code != 429 || decode(t, w).Error != "too_many_requests" {
			t.Fatalf("got status %d: %s, want 429, too_many_requests", w.Code, w.Body)
		}
		wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if err != nil || wait != 10 {
			t.Errorf("Retry-After = %q, want 10", w.Header().Get("Retry-After"))
		}
		elsewhere := without(f.fields(base))
		elsewhere["client_id"], elsewhere["client_secret"] = other.ClientID, other.ClientSecret.Reveal()
		if w := f.post("application/json", jsonBody(elsewhere)); w.Code != 200 {
			t.Errorf("another client: status %d, want 200", w.Code)
		}
		time.Sleep(time.Duration(wait) * time.Second) // synctest's fake clock
		if w := f.post("application/json", body); w.Code != 200 {
			t.Errorf("after the wait: status %d, want 200", w.Code)
		}
	})
}

func TestOneAddressMayHaveManyClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for i := range 50 {
			_, credentials := f.Account("acme", fmt.Sprintf("client-%d", i))
			fields := without(f.fields(base))
			fields["client_id"], fields["client_secret"] = credentials.ClientID, credentials.ClientSecret.Reveal()
			for range 20 {
				if w := f.post("application/json", jsonBody(fields), from("192.0.2.1:1")); w.Code != 200 {
					t.Fatalf("client %d: status %d: %s, want 200", i, w.Code, w.Body)
				}
			}
		}
	})
}

func TestRequestsAreLimitedPerAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *tokenapi.Options) { o.Limits.Address = tokenapi.Rate{PerSecond: 1, Burst: 3} })
		tests := []struct {
			address string
			want    int
		}{
			{"192.0.2.1:10", 401},
			{"192.0.2.1:11", 401},
			{"[::ffff:192.0.2.1]:12", 401},
			{"192.0.2.1:13", 429},
			{"192.0.2.2:10", 401},
			{"[2001:db8::1]:1", 401},
			{"[2001:db8::2]:1", 401},
			{"[2001:db8:0:0:ffff::]:1", 401},
			{"[2001:db8::4]:1", 429},
			{"[2001:db8:0:1::1]:1", 401},
		}
		for i, tc := range tests {
			fields := f.fields(base)
			fields["client_id"] = fmt.Sprint("guess-", i)
			if w := f.post("application/json", jsonBody(fields), from(tc.address)); w.Code != tc.want {
				t.Errorf("request %d from %s: status %d, want %d", i, tc.address, w.Code, tc.want)
			}
		}
	})
}

func TestGuessingIsSlowAndDoesNotLockOutTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		guess := without(f.fields(base))
		guess["client_secret"] = "guess"
		refused := 0
		for range 50 {
			switch w := f.post("application/json", jsonBody(guess), from("203.0.113.9:1")); w.Code {
			case 401:
			case 429:
				refused++
				if w.Header().Get("Retry-After") == "" {
					t.Error("response has no Retry-After header")
				}
			default:
				t.Fatalf("got status %d, want 401 or 429", w.Code)
			}
		}
		if refused != 30 {
			t.Errorf("%d of 50 guesses were rate-limited, want 30", refused)
		}
		if w := f.post("application/json", jsonBody(f.fields(base)), from("192.0.2.1:1")); w.Code != 200 {
			t.Errorf("real client: got status %d, want 200", w.Code)
		}
		if w := f.post("application/json", jsonBody(f.fields(base)), from("203.0.113.9:1")); w.Code != 200 {
			t.Errorf("real client at the address of the attacker: got status %d, want 200", w.Code)
		}
	})
}

// TestAttackLockingAClientOut: wrong secrets from many addresses do not lock out a client
// at an address that has already got a token, and guessing stays slow.
func TestAttackLockingAClientOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		owner := func() int { return f.post("application/json", jsonBody(f.fields(base)), from("192.0.2.1:1")).Code }
		if got := owner(); got != 200 {
			t.Fatalf("owner: got status %d, want 200", got)
		}
		wrong := f.fields(base)
		wrong["client_secret"] = "guess"
		attempts, lockedOut, tried := 0, 0, 0
		for network := range 100 {
			for guess := range 30 {
				attempts++
				if w := f.post("application/json", jsonBody(wrong),
					from(fmt.Sprintf("203.0.%d.%d:1", network, guess%2))); w.Code == 401 {
					tried++
				}
			}
			if owner() != 200 {
				lockedOut++
			}
			time.Sleep(100 * time.Millisecond) // synctest's fake clock; keeps the owner below its own limit
		}
		if tried > 1000+200 {
			t.Errorf("%d guesses were checked in 10 s, want about 1,100 at most", tried)
		}
		tally.Attack(t, "locking a client out with wrong secrets", attempts, lockedOut)
	})
}

// deviceGrant signs a user in on a device and returns the refresh token.
func deviceGrant(t *testing.T, w *signintest.World) string {
	t.Helper()
	in, _, err := w.SignIn.Sessions.BeginSession(t.Context(), w.User("acme", "ann", "ann@example.com"),
		signin.MethodPassword)
	if err != nil {
		t.Fatal(err)
	}
	d, err := w.SignIn.Devices.BeginDevice(t.Context(), signin.ClientCLI, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SignIn.Devices.DecideDevice(t.Context(), d.UserCode, in, true); err != nil {
		t.Fatal(err)
	}
	g, err := w.SignIn.Devices.PollDevice(t.Context(), d.Code.Reveal(), signin.ClientCLI)
	if err != nil {
		t.Fatal(err)
	}
	return g.Refresh.Reveal()
}

// TestAttackWrongSecretsBehindAProxy sends wrong requests of every kind from the address of a
// proxy, until every limit of the address is exceeded. Clients behind the same proxy that have
// the right secret must not notice.
func TestAttackWrongSecretsBehindAProxy(t *testing.T) {
	t.Parallel()
	people := signintest.New(t)
	f := newFixture(t, func(o *tokenapi.Options) {
		o.Subjects, o.Codes, o.Devices = people.SignIn.Subjects, people.SignIn.Codes, people.SignIn.Devices
		o.Grants = people.SignIn.Grants
		o.Limits.Address = tokenapi.Rate{PerSecond: 0.01, Burst: 10}
		o.Limits.Failures = tokenapi.Rate{PerSecond: 0.01, Burst: 5}
		o.Limits.Guesses = tokenapi.Rate{PerSecond: 0.01, Burst: 5}
	})
	proxy := from("192.0.2.1:1")
	refresh := deviceGrant(t, people)
	wrong := f.fields(base)
	wrong["client_secret"] = "guess"
	other := f.fields(base)
	other["client_id"], other["client_secret"] = "nobody", "guess"
	texts := map[string]bool{}
	for range 30 {
		for _, body := range []string{
			jsonBody(wrong), jsonBody(other), "{", `{"grant_type":"x"}`,
			`{"grant_type":"refresh_token","client_id":"freshet-cli","refresh_token":"junk"}`,
		} {
			w := f.post("application/json", body, proxy)
			if w.Code != 429 {
				continue
			}
			got := decode(t, w)
			texts[got.Description] = true
			if w.Header().Get("Retry-After") == "" || !strings.Contains(got.Description, "try again in ") {
				t.Errorf("got Retry-After %q and %q, want both to say when to try again",
					w.Header().Get("Retry-After"), got.Description)
			}
		}
	}
	for _, want := range []string{"wrong secrets for this account", "failed requests from this address"} {
		found := false
		for text := range texts {
			found = found || strings.Contains(text, want)
		}
		if !found {
			t.Errorf("got the texts %v, want one with %q", texts, want)
		}
	}
	attempts, lockedOut := 0, 0
	for range 5 {
		attempts += 2
		if w := f.post("application/json", jsonBody(f.fields(base)), proxy); w.Code != 200 {
			lockedOut++
			t.Errorf("client with the right secret: got %d %s, want 200", w.Code, w.Body)
		}
		w := f.post("application/json", jsonBody(map[string]string{
			"grant_type": "refresh_token", "client_id": "freshet-cli", "refresh_token": refresh,
		}), proxy)
		if w.Code != 200 {
			t.Fatalf("device with the right refresh token: got %d %s, want 200", w.Code, w.Body)
		}
		refresh = decode(t, w).RefreshToken
	}
	tally.Attack(t, "lock clients out with wrong secrets behind the same proxy", attempts, lockedOut)
}

func TestLimitersEvictTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *tokenapi.Options) {
		o.Limits = tokenapi.Limits{Guesses: tokenapi.Rate{PerSecond: 0.001, Burst: 1}, MaxTracked: 10}
	})
	for i := range 200 {
		fields := f.fields(base)
		fields["client_id"] = fmt.Sprint("client-", i)
		if w := f.post("application/json", jsonBody(fields), from(fmt.Sprintf("10.0.0.%d:1", i))); w.Code != 401 {
			t.Fatalf("status %d, want 401", w.Code)
		}
	}
	// The limiter still has the last ten clients.
	fields := f.fields(base)
	fields["client_id"] = "client-199"
	if w := f.post("application/json", jsonBody(fields), from("10.9.9.9:1")); w.Code != 429 {
		t.Errorf("status %d, want 429", w.Code)
	}
	fields["client_id"] = "client-0"
	if w := f.post("application/json", jsonBody(fields), from("10.9.9.8:1")); w.Code != 401 {
		t.Errorf("status %d, want 401", w.Code)
	}
}

// TestConnectionDecidesTheAddress: a client cannot change its address with a header.
func TestConnectionDecidesTheAddress(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *tokenapi.Options) { o.Limits.Address = tokenapi.Rate{PerSecond: 0.001, Burst: 1} })
	wrong := f.fields(base)
	wrong["client_secret"] = "guess"
	for i, want := range []int{401, 429} {
		forwarded := func(r *http.Request) { r.Header.Set("X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i)) }
		if w := f.post("application/json", jsonBody(wrong), from("192.0.2.9:1"), forwarded); w.Code != want {
			t.Errorf("request %d: status %d, want %v", i, w.Code, want)
		}
	}
	if w := f.post("application/json", jsonBody(f.fields(base)), from("a name")); w.Code != 200 {
		t.Errorf("status %d, want 200", w.Code)
	}
}

func BenchmarkToken(b *testing.B) {
	f := newFixture(b, func(o *tokenapi.Options) {
		o.Limits = tokenapi.Limits{
			Client:  tokenapi.Rate{PerSecond: 1e9, Burst: 1e9},
			Address: tokenapi.Rate{PerSecond: 1e9, Burst: 1e9},
		}
		o.Auditor = nil
	})
	body := jsonBody(f.fields(base))
	for b.Loop() {
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(body)))
		if w.Code != 200 {
			b.Fatal(w.Code)
		}
		f.log.Reset()
	}
}
