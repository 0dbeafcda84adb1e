package signin_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
)

const (
	verifier = "a-code-verifier-of-the-length-that-is-demanded-by-the-rfc"
	redirect = "http://127.0.0.1:8080/console/"
	audience = identitytest.IssuerURL
)

// begin starts a browser session of a user.
func begin(t *testing.T, w *signintest.World, of signin.Subject) *signin.Session {
	t.Helper()
	s, _, err := w.SignIn.Sessions.BeginSession(t.Context(), of, signin.MethodPassword)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// code signs a user in in a browser and issues an authorization code for the console.
func code(t *testing.T, w *signintest.World, of signin.Subject) (*signin.Session, string) {
	t.Helper()
	s, _, err := w.SignIn.Sessions.BeginSession(t.Context(), of, signin.MethodPassword)
	if err != nil {
		t.Fatal(err)
	}
	token, err := w.SignIn.Codes.NewCode(t.Context(), s, signin.CodeRequest{
		Client: signin.ClientConsole, Redirect: redirect, Challenge: challenge(verifier), Nonce: "n",
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, token.Reveal()
}

// console signs a user in in the console.
func console(t *testing.T, w *signintest.World, of signin.Subject) (*signin.Session, *signin.Grant, string) {
	t.Helper()
	s, token := code(t, w, of)
	g, err := w.SignIn.Codes.UseCode(t.Context(), token, signin.ClientConsole, redirect, verifier)
	if err != nil {
		t.Fatal(err)
	}
	return s, g, access(t, w, g)
}

// device signs a user in on a device.
func device(t *testing.T, w *signintest.World, of signin.Subject) (*signin.Grant, string) {
	t.Helper()
	s, _, err := w.SignIn.Sessions.BeginSession(t.Context(), of, signin.MethodPassword)
	if err != nil {
		t.Fatal(err)
	}
	d, err := w.SignIn.Devices.BeginDevice(t.Context(), signin.ClientCLI, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SignIn.Devices.DecideDevice(t.Context(), d.UserCode, s, true); err != nil {
		t.Fatal(err)
	}
	g, err := w.SignIn.Devices.PollDevice(t.Context(), d.Code.Reveal(), signin.ClientCLI)
	if err != nil {
		t.Fatal(err)
	}
	return g, access(t, w, g)
}

func access(t *testing.T, w *signintest.World, g *signin.Grant) string {
	t.Helper()
	token, _, _, err := w.SignIn.Grants.Tokens(g)
	if err != nil {
		t.Fatal(err)
	}
	return token.Reveal()
}

// checkToken checks the error of a token at the resource API and returns its principal.
func checkToken(t *testing.T, v *identity.Verifier, token string, err error) *identity.Principal {
	t.Helper()
	principal, got := v.Authenticate(t.Context(), token, identitytest.IssuerURL)
	if !errors.Is(got, err) {
		t.Errorf("token: got %v, want %v", got, err)
	}
	return principal
}

func countRecords(w *signintest.World, prefix string) (n int) {
	for _, key := range w.Records() {
		if strings.HasPrefix(key, prefix) {
			n++
		}
	}
	return n
}
