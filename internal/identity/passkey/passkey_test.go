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

func TestWhereBrowsersHavePasskeys(t *testing.T) {
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

// A question is answered by a passkey of the host that it was asked at, and names nobody.
func TestQuestions(t *testing.T) {
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
	asked, err := here.AskNew(of, "Ann", nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := here.New(asked, of, device.Make(string(asked.Options)))
	if err != nil || key.Host != "one.example.com" || key.Synced {
		t.Fatalf("the new passkey: %+v %v", key, err)
	}
	again, err := here.AskNew(of, "Ann", []signin.Passkey{key})
	if err != nil || !strings.Contains(string(again.Options), "excludeCredentials") {
		t.Errorf("a device that has one is not left out: %s %v", again.Options, err)
	}
	if _, err := here.New(again, signin.Subject{UID: "uid-eve"},
		device.Make(string(again.Options))); errs.KindOf(err) != errs.Invalid {
		t.Errorf("the answer for somebody else: got %v, want it refused", err)
	}
	find := func(uid string) (signin.Subject, []signin.Passkey, error) {
		if uid != of.UID {
			return signin.Subject{}, nil, signin.ErrWrongPasskey
		}
		return of, []signin.Passkey{key}, nil
	}
	question, err := here.Ask()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(question.Options); strings.Contains(text, "allowCredentials") ||
		!strings.Contains(text, `"userVerification":"required"`) {
		t.Errorf("the question %s names passkeys, or does not have the person verified", text)
	}
	used, err := here.Check(question, device.Use(string(question.Options)), find)
	if err != nil || used.Of != of || used.Count <= key.Count {
		t.Errorf("the true answer: got %+v %v", used, err)
	}
	elsewhere, err := there.Ask()
	if err != nil {
		t.Fatal(err)
	}
	device.Origin, device.Host = "https://two.example.com", "two.example.com"
	if _, err := there.Check(elsewhere, device.Use(string(elsewhere.Options)), find); !errors.Is(err,
		signin.ErrWrongPasskey) {
		t.Errorf("a passkey of another host: got %v, want %v", err, signin.ErrWrongPasskey)
	}
}
