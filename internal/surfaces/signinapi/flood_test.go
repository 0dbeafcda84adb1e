package signinapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/internal/identity/signin/signintest"
	"freshet/internal/surfaces/signinapi"
	"freshet/internal/surfaces/throttle"
	"freshet/test/tally"
)

// signInFrom submits the sign-in form from an address.
func (b *browser) signInFrom(address, name, password string) response {
	b.t.Helper()
	if b.csrfToken == "" {
		b.get("/oauth/signin")
	}
	r := b.request(http.MethodPost, "/oauth/signin",
		url.Values{"proof": {b.csrfToken}, "organization": {"acme"}, "name": {name}, "password": {password}})
	r.Header.Set(addressHeader, address)
	return b.do(r)
}

// TestAttackPasswordFlood guesses passwords of many names from 120 addresses at the same time, so
// that the server cannot check them all. A person must be able to sign in from an address from
// which they have signed in before.
func TestAttackPasswordFlood(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.user("ann")
	if a := w.browser().signInFrom("192.0.2.1", "ann", signintest.Password); a.status != 303 {
		t.Fatalf("first sign-in: got %d, want 303", a.status)
	}
	ctx, stop := context.WithCancel(t.Context())
	var busy, guesses atomic.Int32
	full := make(chan struct{})
	var attackers sync.WaitGroup
	for i := range 120 {
		attackers.Go(func() {
			b := w.browser()
			for n := 0; ctx.Err() == nil; n++ {
				a := b.signInFrom(fmt.Sprintf("198.51.100.%d", i), fmt.Sprintf("name-%d-%d", i, n), "a wrong password")
				guesses.Add(1)
				if a.status == 503 && busy.Add(1) == 1 {
					close(full)
				}
			}
		})
	}
	select {
	case <-full:
	case <-time.After(time.Minute):
		t.Error("the guesses did not fill the queue")
	}
	successes := 0
	const signIns = 3
	for range signIns {
		if a := w.browser().signInFrom("192.0.2.1", "ann", signintest.Password); a.status != 303 {
			successes++
			t.Errorf("owner at the usual address: got %d, want 303", a.status)
		}
	}
	stop()
	attackers.Wait()
	t.Logf("%d guesses, %d rejected as too many", guesses.Load(), busy.Load())
	tally.Attack(t, "lock a person out with guesses from 120 addresses", signIns, successes)
}

// TestAttackLockOutAfterRestart uses up the guesses at a person, by name and by e-mail address,
// after the server was restarted, and all attempts of the person's own address. The person signs
// in from the usual address, with the other name.
func TestAttackLockOutAfterRestart(t *testing.T) {
	t.Parallel()
	limits := func(o *signinapi.Options) {
		o.Limits.Account = throttle.Rate{PerSecond: 0.0001, Burst: 5}
		o.Limits.Guesses = throttle.Rate{PerSecond: 0.0001, Burst: 6}
		o.Limits.Address = throttle.Rate{PerSecond: 0.0001, Burst: 8}
	}
	w := newHarness(t, limits)
	w.user("ann")
	if a := w.browser().signInFrom("192.0.2.1", "ann", signintest.Password); a.status != 303 {
		t.Fatalf("first sign-in: got %d, want 303", a.status)
	}
	w.restart(limits)
	attempts, successes := 0, 0
	for _, name := range []string{"ann", "ANN@example.com"} {
		last := 0
		for i := range 10 {
			last = w.browser().signInFrom(fmt.Sprintf("198.51.100.%d", i), name, "a wrong password").status
		}
		if last != 429 {
			t.Fatalf("guess 10 at %s: got %d, want 429", name, last)
		}
	}
	for i := range 10 { // other people at the same address
		w.browser().signInFrom("192.0.2.1", fmt.Sprintf("name-%d", i), "a wrong password")
	}
	for _, name := range []string{"ann", "ann@example.com"} {
		attempts++
		if a := w.browser().signInFrom("192.0.2.1", name, signintest.Password); a.status != 303 {
			successes++
			t.Errorf("%s at the usual address: got %d, want 303", name, a.status)
		}
	}
	a := w.browser().signInFrom("203.0.113.1", "ann", signintest.Password)
	if a.status != 429 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "this account") {
		t.Errorf("new address: got %d %q, want 429 that names the limit", a.status, a.header.Get("Retry-After"))
	}
	// Guesses at the known address are limited, too.
	known := 0
	for range 12 {
		attempts++
		if w.browser().signInFrom("192.0.2.1", "ann", "a wrong password").status == 401 {
			known++
		}
	}
	if known > 5 {
		successes++
		t.Errorf("known address had %d guesses, want at most 5", known)
	}
	tally.Attack(t, "lock a person out after a restart", attempts, successes)
}
