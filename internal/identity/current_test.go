package identity_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
)

// TestTokensAreRejectedWhileChangesAreMissing checks that a server that does not receive
// revocations rejects all tokens, including those of running calls.
func TestTokensAreRejectedWhileChangesAreMissing(t *testing.T) {
	t.Parallel()
	world := identitytest.New(t)
	var current atomic.Bool
	current.Store(true)
	world.Directory.SetCurrentCheck(current.Load)
	account, _ := world.Account("acme", "robot")
	token := world.Token(account, identitytest.IssuerURL)
	principal, err := world.Verifier.Authenticate(t.Context(), token, identitytest.IssuerURL)
	if err != nil || !principal.Live() {
		t.Fatalf("got %v, want a live principal", err)
	}
	current.Store(false)
	if _, err := world.Verifier.Authenticate(t.Context(), token, identitytest.IssuerURL); !errors.Is(err,
		identity.ErrNotCurrent) || errs.KindOf(err) != errs.Unavailable {
		t.Errorf("got %v, want %v", err, identity.ErrNotCurrent)
	}
	if principal.Live() {
		t.Error("principal of a running call is live, want not live")
	}
	current.Store(true)
	if _, err := world.Verifier.Authenticate(t.Context(), token, identitytest.IssuerURL); err != nil ||
		!principal.Live() {
		t.Errorf("got %v, want the principal back", err)
	}
}
