package signin_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"freshet/internal/identity"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
	"freshet/test/tally"
)

// approve approves a new device in a session and returns its device code.
func approve(t *testing.T, w *signintest.World, in *signin.Session) string {
	t.Helper()
	d, err := w.SignIn.Devices.BeginDevice(t.Context(), signin.ClientCLI, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SignIn.Devices.DecideDevice(t.Context(), d.UserCode, in, true); err != nil {
		t.Fatal(err)
	}
	return d.Code.Reveal()
}

// TestAttackApprovedDevice approves a device in a session that an attacker has, lets the owner
// end that session, and polls only afterwards.
func TestAttackApprovedDevice(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	w.Invite(ann)
	sessions := w.SignIn.Sessions
	attempts, successes := 0, 0
	for name, end := range map[string]func(in *signin.Session) error{
		"sign-out":              func(in *signin.Session) error { return sessions.EndSession(t.Context(), in.ID) },
		"new password":          func(*signin.Session) error { w.Invite(ann); return nil },
		"end of all sessions":   func(*signin.Session) error { return sessions.EndAll(t.Context(), ann.UID) },
		"passkey removed in it": func(in *signin.Session) error { return sessions.EndOthers(t.Context(), in) },
		"passkey removed in other": func(*signin.Session) error {
			return sessions.EndOthers(t.Context(), begin(t, w, ann))
		},
	} {
		in := begin(t, w, ann)
		code := approve(t, w, in)
		if err := end(in); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		attempts++
		if _, err := w.SignIn.Devices.PollDevice(t.Context(), code, signin.ClientCLI); err == nil {
			successes++
			t.Errorf("%s: the device got tokens afterwards", name)
		}
	}
	// Another replica that has not applied the end yet gives no tokens either.
	other := w.Replica(w.Directory)
	in := begin(t, w, ann)
	code := approve(t, w, in)
	if err := sessions.EndSession(t.Context(), in.ID); err != nil {
		t.Fatal(err)
	}
	attempts++
	if _, err := other.Devices.PollDevice(t.Context(), code, signin.ClientCLI); err == nil {
		successes++
		t.Error("the device got tokens of another replica after the sign-out")
	}
	if n := countRecords(w, "grants/"); n != 0 {
		successes++
		t.Errorf("got %d grants, want none", n)
	}
	tally.Attack(t, "tokens of a device whose approval has ended", attempts, successes)
}

// TestDeviceOutlivesSignOut checks that a device that has its tokens stays signed in when the
// browser that approved it signs out.
func TestDeviceOutlivesSignOut(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	in := begin(t, w, ann)
	g, err := w.SignIn.Devices.PollDevice(t.Context(), approve(t, w, in), signin.ClientCLI)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SignIn.Sessions.EndSession(t.Context(), in.ID); err != nil {
		t.Fatal(err)
	}
	checkToken(t, w.Verifier, access(t, w, g), nil)
	if _, err := w.SignIn.Grants.Refresh(t.Context(), g.Refresh.Reveal(), signin.ClientCLI); err != nil {
		t.Errorf("refresh after the sign-out of the browser: got %v, want none", err)
	}
}

// TestAttackMadeUpRefreshToken sends refresh tokens with the id of a session, which is no
// secret, and a made-up secret. None may end the session.
func TestAttackMadeUpRefreshToken(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	g, bearer := device(t, w, ann)
	attempts, successes := 0, 0
	tamper := func(secret string) []string {
		flipped := []byte(secret)
		if flipped[0]++; flipped[0] > 'z' {
			flipped[0] = 'a'
		}
		return []string{
			"junk", "", ".", secret + "x", secret[:len(secret)-1], string(flipped), strings.ToUpper(secret),
			strings.Repeat("A", len(secret)), secret + "." + secret,
		}
	}
	for range 3 {
		_, secret, _ := strings.Cut(g.Refresh.Reveal(), ".")
		for _, made := range tamper(secret) {
			attempts++
			_, err := w.SignIn.Grants.Refresh(t.Context(), g.ID+"."+made, signin.ClientCLI)
			var reused *signin.ReusedTokenError
			if !errors.Is(err, signin.ErrInvalidGrant) || errors.As(err, &reused) {
				successes++
				t.Errorf("made-up secret: got %v, want %v", err, signin.ErrInvalidGrant)
			}
			if _, err := w.Verifier.Authenticate(t.Context(), bearer, audience); err != nil {
				t.Fatalf("made-up secret %q ended the session: %v", made, err)
			}
		}
		next, err := w.SignIn.Grants.Refresh(t.Context(), g.Refresh.Reveal(), signin.ClientCLI)
		if err != nil {
			t.Fatal(err)
		}
		g, bearer = next, access(t, w, next)
	}
	tally.Attack(t, "end a session with a made-up refresh token", attempts, successes)
}

// TestOldRefreshTokenEndsTheSession checks that every genuine refresh token of a session, also
// the first of many, ends the session when it is used again.
func TestOldRefreshTokenEndsTheSession(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	for age := range 4 {
		g, bearer := device(t, w, ann)
		tokens := []string{g.Refresh.Reveal()}
		for range 4 {
			next, err := w.SignIn.Grants.Refresh(t.Context(), tokens[len(tokens)-1], signin.ClientCLI)
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, next.Refresh.Reveal())
		}
		_, err := w.SignIn.Grants.Refresh(t.Context(), tokens[age], signin.ClientCLI)
		if age == 3 { // its successor was not used
			if err != nil {
				t.Errorf("repeated request: got %v, want none", err)
			}
			continue
		}
		var reused *signin.ReusedTokenError
		if !errors.As(err, &reused) {
			t.Errorf("token %d of 5: got %v, want a reused token", age, err)
		}
		checkToken(t, w.Verifier, bearer, identity.ErrSessionEnded)
	}
}

// TestGrantOfAnEarlierVersion refreshes a grant whose record and token have no checksum.
func TestGrantOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	g, bearer := device(t, w, w.User("acme", "ann", "ann@example.com"))
	const old = "an-old-secret-of-a-refresh-token-without-a-checksum"
	stored, revision, err := w.Store().Get(t.Context(), "grants/"+g.ID)
	if err != nil {
		t.Fatal(err)
	}
	record := map[string]any{}
	if err := json.Unmarshal(stored, &record); err != nil {
		t.Fatal(err)
	}
	delete(record, "family")
	record["hash"] = identity.HashToken(identity.NewSecret(old))
	if stored, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store().Put(t.Context(), "grants/"+g.ID, stored, revision); err != nil {
		t.Fatal(err)
	}
	refresh := func(token string) (*signin.Grant, error) {
		return w.SignIn.Grants.Refresh(t.Context(), token, signin.ClientCLI)
	}
	if _, err := refresh(g.ID + ".junk"); !errors.Is(err, signin.ErrInvalidGrant) {
		t.Errorf("made-up secret: got %v, want %v", err, signin.ErrInvalidGrant)
	}
	checkToken(t, w.Verifier, bearer, nil)
	next, err := refresh(g.ID + "." + old)
	if err != nil {
		t.Fatalf("old token: %v", err)
	}
	if again, err := refresh(g.ID + "." + old); err != nil || again.Refresh.Reveal() != next.Refresh.Reveal() {
		t.Errorf("repeated request: got %v, want the same successor", err)
	}
	if _, err := refresh(next.Refresh.Reveal()); err != nil {
		t.Errorf("next token: %v", err)
	}
}

// TestAttackSameEmail creates users with the e-mail address of a person, and one whose name is
// that address, and lets the person sign in with the address.
func TestAttackSameEmail(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	w.Invite(ann)
	attempts, successes := 0, 0
	try := func(name string) {
		t.Helper()
		for _, typed := range []string{"ann", "ann@example.com", "Ann@Example.com"} {
			attempts++
			of, err := w.SignIn.Passwords.Authenticate(t.Context(), "", "acme", typed, signintest.Password)
			if err != nil || of != ann {
				successes++
				t.Errorf("%s: %s signs in as %v, %v; want %v", name, typed, of, err, ann)
			}
			if !w.SignIn.Subjects.Matches(ann, "acme", typed) {
				successes++
				t.Errorf("%s: passkey does not match %s", name, typed)
			}
		}
	}
	try("alone")
	w.User("acme", "aaa", "ann@example.com")
	try("second user without a password")
	invite := func(name, email string) {
		w.User("acme", name, email)
		token, _, err := w.SignIn.Links.Invite(t.Context(), "acme", name, "mallory", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.SignIn.Passwords.Accept(t.Context(), token.Reveal(), "a password of mallory"); err != nil {
			t.Fatal(err)
		}
	}
	invite("aaa", "ann@example.com")
	try("second user with a password")
	invite("aab", "ANN@example.com")
	try("third user with a password")
	invite("ann@example.com", "mallory@example.com")
	try("user with the address as its name")
	w.User("other", "ann", "ann@example.com")
	try("user of another organization")
	restarted := w.Replica(w.Directory)
	attempts++
	if of, err := restarted.Passwords.Authenticate(t.Context(), "", "acme", "ann@example.com",
		signintest.Password); err != nil || of != ann {
		successes++
		t.Errorf("after a restart: got %v, %v; want %v", of, err, ann)
	}
	tally.Attack(t, "block a person with a user of the same e-mail address", attempts, successes)
}
