package identity_test

import (
	"testing"
	"time"

	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
)

// TestClockAhead issues tokens with a clock that is ten minutes ahead, as on a member without NTP.
// Members with the right clock accept them at once, and none of them accepts an expired one.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "robot")
	ahead, err := identity.NewIssuer(identitytest.IssuerURL, w.Issuer.Keys())
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Now().Add(10 * time.Minute)
	ahead.SetClock(func() time.Time { return clock })
	const api = "https://api.example.com"
	token, _, err := ahead.AccessToken(account, time.Hour, api)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Verifier.Authenticate(t.Context(), token.Reveal(), api); err != nil {
		t.Errorf("access token: got %v, want that it is accepted", err)
	}
	clock = time.Now().Add(-2 * time.Hour)
	token, _, err = ahead.AccessToken(account, time.Hour, api)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Verifier.Authenticate(t.Context(), token.Reveal(), api); err == nil {
		t.Error("token that expired an hour ago: got no error, want one")
	}
}
