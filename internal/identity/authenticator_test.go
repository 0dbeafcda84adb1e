package identity_test

import (
	"errors"
	"testing"

	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
)

// TestOperatorToken checks that the operator's token works on every surface and without accounts,
// while other tokens work for their audiences only.
func TestOperatorToken(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	operator := &identity.Principal{Name: "operator", System: true}
	a := identity.NewAuthenticator(w.Verifier, operator, "operator's token")
	for _, audiences := range [][]string{nil, {api}, {plane}} {
		got, err := a.Authenticate(t.Context(), "operator's token", audiences...)
		if err != nil || got != operator || a.Operator() != operator {
			t.Errorf("operator's token for %v: got %v, %v; want the operator", audiences, got, err)
		}
	}
	account, _ := w.Account("acme", "ci")
	token := w.Token(account, api)
	if got, err := a.Authenticate(t.Context(), token, api); err != nil || got.ServiceAccount != "ci" || got.System {
		t.Errorf("token of an account: got %+v, %v; want service account ci", got, err)
	}
	if _, err := a.Authenticate(t.Context(), token, plane); !errors.Is(err, identity.ErrWrongAudience) {
		t.Errorf("token for another audience: got %v, want %v", err, identity.ErrWrongAudience)
	}
	for _, wrong := range []string{"", "operator's toke", "operator's token "} {
		if _, err := a.Authenticate(t.Context(), wrong, api); err == nil {
			t.Errorf("token %q is accepted, want an error", wrong)
		}
	}
}
