package passkey_test

import (
	"errors"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/identity/passkey"
	"freshet/internal/identity/passkey/passkeytest"
	"freshet/internal/identity/signin"
)

func TestOriginsWithPasskeys(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]string{
		"https://stream.example.com": "stream.example.com", "https://Stream.Example.com:8443": "stream.example.com",
		"http://localhost:8080":  "localhost",
		"https://localhost:8443": "localhost", "http://a.localhost:1": "a.localhost",
		"http://stream.example.com": "", "http://127.0.0.1:8080": "", "https://127.0.0.1:8443": "",
		"https://[::1]:8443": "", "http://notlocalhost:1": "",
	} {
		party, err := passkey.New(origin)
		got := ""
		if party != nil {
			got = party.Host()
		}
		if err != nil || got != want {
			t.Errorf("%s: got %q %v, want %q", origin, got, err, want)
		}
	}
}

// TestRequests checks that only a passkey of the request's host can respond to it, and that a
// request reveals no user.
func TestRequests(t *testing.T) {
	t.Parallel()
	of := signin.Subject{Organization: "acme", User: "ann", UID: "uid-ann", Email: "ann@example.com"}
	here, err := passkey.New("https://one.example.com")
	if err != nil {
		t.Fatal(err)
	}
	there, err := passkey.New("https://two.example.com")
	if err != nil {
		t.Fatal(err)
	}
	device := passkeytest.New(t, "https://one.example.com", "one.example.com")
	session, err := here.BeginRegistration(of, "Ann", nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := here.FinishRegistration(session, of, device.CreateResponse(string(session.Options)))
	if err != nil || key.Host != "one.example.com" || key.Synced {
		t.Fatalf("new passkey: got %+v, %v, want one for one.example.com", key, err)
	}
	again, err := here.BeginRegistration(of, "Ann", []signin.Passkey{key})
	if err != nil || !strings.Contains(string(again.Options), "excludeCredentials") {
		t.Errorf("request does not exclude the existing passkey: %s %v", again.Options, err)
	}
	if _, err := here.FinishRegistration(again, signin.Subject{UID: "uid-eve"},
		device.CreateResponse(string(again.Options))); errs.KindOf(err) != errs.Invalid {
		t.Errorf("response for another user: got %v, want an error of kind Invalid", err)
	}
	find := func(uid string) (signin.Subject, []signin.Passkey, error) {
		if uid != of.UID {
			return signin.Subject{}, nil, signin.ErrWrongPasskey
		}
		return of, []signin.Passkey{key}, nil
	}
	question, err := here.BeginSignIn()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(question.Options); strings.Contains(text, "allowCredentials") ||
		!strings.Contains(text, `"userVerification":"required"`) {
		t.Errorf("request %s lists passkeys, or does not require user verification", text)
	}
	used, err := here.FinishSignIn(question, device.SignInResponse(string(question.Options)), find)
	if err != nil || used.Subject != of || used.Count <= key.Count {
		t.Errorf("valid response: got %+v, %v, want %+v with a higher count", used, err, of)
	}
	elsewhere, err := there.BeginSignIn()
	if err != nil {
		t.Fatal(err)
	}
	device.Origin, device.Host = "https://two.example.com", "two.example.com"
	if _, err := there.FinishSignIn(elsewhere, device.SignInResponse(string(elsewhere.Options)), find); !errors.Is(err,
		signin.ErrWrongPasskey) {
		t.Errorf("passkey of another host: got %v, want %v", err, signin.ErrWrongPasskey)
	}
}
