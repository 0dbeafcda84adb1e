package signin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"freshet/internal/identity"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
)

func key(id string) signin.Passkey {
	return signin.Passkey{ID: []byte(id), Public: []byte("public"), Host: "localhost", Name: id, Count: 1}
}

func TestPasskeysOfAPerson(t *testing.T) {
	w := signintest.New(t)
	of := w.User("acme", "ada", "ada@example.com")
	token, _, err := w.SignIn.Links.Invite(t.Context(), "acme", "ada", "test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	nameless := key("first")
	nameless.Name = "  "
	if _, err := w.SignIn.Passkeys.AcceptPasskey(t.Context(), token.Reveal(), nameless); err != nil {
		t.Fatal(err)
	}
	state := w.SignIn.People.StateOf(of.UID, of.Email)
	if state.Passkeys != 1 || state.Password || !state.Invited.IsZero() {
		t.Errorf("state: got %+v, want one passkey", state)
	}
	if _, err := w.SignIn.Passkeys.AcceptPasskey(t.Context(), token.Reveal(), key("thief")); !errors.Is(err,
		signin.ErrLinkUsed) {
		t.Errorf("second use of the link: got %v, want %v", err, signin.ErrLinkUsed)
	}
	_, err = w.SignIn.Passwords.Authenticate(t.Context(), "", "acme", "ada", "")
	if !errors.Is(err, signin.ErrWrongPassword) {
		t.Errorf("no password: got %v, want %v", err, signin.ErrWrongPassword)
	}
	here, _, err := w.SignIn.Sessions.BeginSession(t.Context(), of, signin.MethodPasskey)
	if err != nil {
		t.Fatal(err)
	}
	err = w.SignIn.Passkeys.RemovePasskey(t.Context(), here, []byte("first"))
	if !errors.Is(err, signin.ErrLastCredential) {
		t.Errorf("removing the last credential: got %v, want %v", err, signin.ErrLastCredential)
	}
	for n := range 9 {
		if err := w.SignIn.Passkeys.AddPasskey(t.Context(), of, key(fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SignIn.Passkeys.AddPasskey(t.Context(), of, key("tenth")); !errors.Is(err, signin.ErrManyPasskeys) {
		t.Errorf("eleventh passkey: got %v, want %v", err, signin.ErrManyPasskeys)
	}
	if err := w.SignIn.Passkeys.AddPasskey(t.Context(), of, key("3")); !errors.Is(err, signin.ErrPasskeyExists) {
		t.Errorf("existing passkey: got %v, want %v", err, signin.ErrPasskeyExists)
	}
	long := key("long")
	long.Name = strings.Repeat("n", 65)
	if err := w.SignIn.Passkeys.AddPasskey(t.Context(), of, long); !errors.Is(err, signin.ErrPasskeyInvalid) {
		t.Errorf("long name: got %v, want %v", err, signin.ErrPasskeyInvalid)
	}
	exists, _, err := w.SignIn.Sessions.BeginSession(t.Context(), of, signin.MethodPasskey)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SignIn.Passkeys.RemovePasskey(t.Context(), here, []byte("3")); err != nil {
		t.Fatal(err)
	}
	if countRecords(w, "sessions/") != 1 || countRecords(w, "sessions/"+exists.ID) != 0 {
		t.Error("RemovePasskey did not end the other session, or ended this one")
	}
	ways, err := w.SignIn.People.CredentialsOf(t.Context(), of)
	if err != nil || len(ways.Passkeys) != 9 || !strings.HasPrefix(ways.Passkeys[0].Name, "Passkey of ") {
		t.Errorf("after removing one: got %d passkeys, %v, the first named %q", len(ways.Passkeys), err,
			ways.Passkeys[0].Name)
	}
	w.Invite(of) // a password replaces all passkeys
	if state := w.SignIn.People.StateOf(of.UID, of.Email); state.Passkeys != 0 || !state.Password {
		t.Errorf("after another invitation: got %+v, want only a password", state)
	}
}

// TestPasskeyBelongsToAnAddress checks that a passkey does not work after the e-mail address
// of its user has changed.
func TestPasskeyBelongsToAnAddress(t *testing.T) {
	w := signintest.New(t)
	of := w.User("acme", "ada", "ada@example.com")
	if err := w.SignIn.Passkeys.AddPasskey(t.Context(), of, key("k")); err != nil {
		t.Fatal(err)
	}
	if _, keys, err := w.SignIn.Passkeys.PasskeysOf(t.Context(), of.UID); err != nil || len(keys) != 1 {
		t.Fatalf("PasskeysOf = %v, %v, want one passkey", keys, err)
	}
	if !w.SignIn.Subjects.Matches(of, "acme", "ADA@example.com") || w.SignIn.Subjects.Matches(of, "globex", "ada") {
		t.Error("Is does not compare the organization, and the name or address without regard to case")
	}
	w.Directory.PutUser(identity.User{Organization: "acme", Name: "ada", Email: "new@example.com", UID: of.UID})
	if _, _, err := w.SignIn.Passkeys.PasskeysOf(t.Context(), of.UID); !errors.Is(err, signin.ErrWrongPasskey) {
		t.Errorf("under another address: got %v, want %v", err, signin.ErrWrongPasskey)
	}
	if err := w.SignIn.Passkeys.AddPasskey(t.Context(), of, key("k2")); !errors.Is(err, signin.ErrNoSession) {
		t.Errorf("adding a passkey under the old address: got %v, want %v", err, signin.ErrNoSession)
	}
}

func TestPasskeyCount(t *testing.T) {
	w := signintest.New(t)
	of := w.User("acme", "ada", "ada@example.com")
	silent := key("silent")
	silent.Count = 0
	for _, k := range []signin.Passkey{key("counts"), silent} {
		if err := w.SignIn.Passkeys.AddPasskey(t.Context(), of, k); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		id    string
		count uint32
		want  error
	}{
		{"counts", 2, nil},
		{"counts", 2, signin.ErrPasskeyCloned},
		{"counts", 1, signin.ErrPasskeyCloned},
		{"counts", 0, signin.ErrPasskeyCloned},
		{"counts", 9, nil},
		{"silent", 0, nil},
		{"silent", 0, nil},
		{"unknown", 1, signin.ErrWrongPasskey},
	} {
		if err := w.SignIn.Passkeys.UsePasskey(t.Context(), of, []byte(c.id), c.count); !errors.Is(err, c.want) {
			t.Errorf("%s with count %d: got %v, want %v", c.id, c.count, err, c.want)
		}
	}
}

// TestChallengeOnce checks that a challenge can be used only once by all replicas.
func TestChallengeOnce(t *testing.T) {
	w := signintest.New(t)
	ends := time.Now().Add(time.Minute)
	if err := w.SignIn.Passkeys.UseChallenge(t.Context(), "c", ends); err != nil {
		t.Fatal(err)
	}
	replica := w.Replica(w.Directory)
	if err := replica.Passkeys.UseChallenge(t.Context(), "c", ends); !errors.Is(err, signin.ErrChallengeUsed) {
		t.Errorf("second use: got %v, want %v", err, signin.ErrChallengeUsed)
	}
	if err := w.SignIn.Passkeys.UseChallenge(t.Context(), "d", time.Now()); !errors.Is(err, signin.ErrChallengeUsed) {
		t.Errorf("after its end: got %v, want %v", err, signin.ErrChallengeUsed)
	}
}
