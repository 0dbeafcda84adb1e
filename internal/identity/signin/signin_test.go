package signin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
)

func TestUserTokenIsValidInTheWholeOrganization(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann@example.com", "Ann@Example.com")
	_, g, token := console(t, w, ann)
	principal := checkToken(t, w.Verifier, token, nil)
	if principal == nil || principal.User != "ann@example.com" || principal.ServiceAccount != "" ||
		principal.Name != "user:ann%40example.com@acme.127.0.0.1:8080" || principal.System || principal.Admin ||
		principal.SessionID != g.ID {
		t.Errorf("got principal %+v, want the user", principal)
	}
	for audience, want := range map[string]error{
		"urn:vendor:messaging:acme:prod":  nil,
		"urn:vendor:messaging:acme:x":     nil,
		"urn:vendor:messaging:acmer:prod": identity.ErrWrongAudience,
		"urn:vendor:messaging:other:prod": identity.ErrWrongAudience,
		"http://elsewhere":                identity.ErrWrongAudience,
	} {
		if _, err := w.Verifier.Authenticate(t.Context(), token, audience); !errors.Is(err, want) {
			t.Errorf("at %s: got %v, want %v", audience, err, want)
		}
	}
	id, err := w.SignIn.Grants.IDToken(g)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Verifier.Authenticate(t.Context(), id.Reveal(), identitytest.IssuerURL,
		signin.ClientConsole); err == nil {
		t.Error("ID token was accepted as an access token")
	}
}

// TestLostRefreshResponseIsRepeated checks that a client that lost the response to a refresh can
// repeat the refresh with the old token.
func TestLostRefreshResponseIsRepeated(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	g, _ := device(t, w, w.User("acme", "ann", "ann@example.com"))
	lost, err := w.SignIn.Grants.Refresh(t.Context(), g.Refresh.Reveal(), signin.ClientCLI)
	if err != nil {
		t.Fatal(err)
	}
	// Another replica returns the same response.
	again, err := w.Replica(w.Directory).Grants.Refresh(t.Context(), g.Refresh.Reveal(), signin.ClientCLI)
	if err != nil {
		t.Fatalf("second refresh: %v, want the same response", err)
	}
	if got, want := again.Refresh.Reveal(), lost.Refresh.Reveal(); got != want || got == g.Refresh.Reveal() {
		t.Error("second response has another refresh token, want the same")
	}
	checkToken(t, w.Verifier, access(t, w, again), nil)
	next, err := w.SignIn.Grants.Refresh(t.Context(), again.Refresh.Reveal(), signin.ClientCLI)
	if err != nil || next.Refresh.Reveal() == again.Refresh.Reveal() {
		t.Errorf("refresh with the next token: got %v, want another token", err)
	}
	for _, key := range w.Records() {
		if value, _, err := w.Store().Get(t.Context(), key); err != nil ||
			strings.Contains(string(value), strings.Split(next.Refresh.Reveal(), ".")[1]) {
			t.Errorf("%s: %v, or a refresh token in clear text", key, err)
		}
	}
}

func TestAdminLinkSignsTheSystemAdministratorIn(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	link, _, err := w.SignIn.Links.AdminLink(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SignIn.Links.CheckLink(t.Context(), link.Reveal()); err != nil {
		t.Errorf("new link: got %v, want it valid", err)
	}
	of, err := w.SignIn.Links.FollowLink(t.Context(), link.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.SignIn.Links.FollowLink(t.Context(), link.Reveal()); !errors.Is(err, signin.ErrLinkUsed) {
		t.Errorf("second use of the link: got %v, want %v", err, signin.ErrLinkUsed)
	}
	_, _, token := console(t, w, of)
	if principal := checkToken(t, w.Verifier, token, nil); principal == nil || !principal.System ||
		principal.ServiceAccount != "admin" {
		t.Errorf("got principal %+v, want the system administrator", principal)
	}
	if _, err := w.Verifier.Authenticate(t.Context(), token, "urn:vendor:messaging:any:where"); err != nil {
		t.Errorf("at a data plane of another organization: got %v, want it accepted", err)
	}
	// New credentials of the account end its sessions.
	w.Account("default", "admin", func(a *identity.Account) { a.Admin, a.System, a.UID = true, true, of.UID })
	checkToken(t, w.Verifier, token, identity.ErrCredentialsReplaced)
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	for name, end := range map[string]struct {
		end func(t *testing.T, ann signin.Subject, s *signin.Session, g *signin.Grant)
		err error
	}{
		"deleting the user": {func(_ *testing.T, ann signin.Subject, _ *signin.Session, _ *signin.Grant) {
			w.Directory.DeleteUser(ann.Organization, ann.User, ann.UID)
		}, identity.ErrUserGone},
		"another address": {func(_ *testing.T, ann signin.Subject, _ *signin.Session, _ *signin.Grant) {
			w.Directory.PutUser(identity.User{
				Organization: ann.Organization, Name: ann.User, UID: ann.UID,
				Email: "other@example.com",
			})
		}, identity.ErrSessionEnded},
		"declining": {func(_ *testing.T, ann signin.Subject, _ *signin.Session, _ *signin.Grant) {
			w.Directory.PutUser(identity.User{
				Organization: ann.Organization, Name: ann.User, UID: ann.UID,
				Email: ann.Email, Barred: true,
			})
		}, identity.ErrSessionEnded},
		"signing out of the browser": {func(t *testing.T, _ signin.Subject, s *signin.Session, _ *signin.Grant) {
			if err := w.SignIn.Sessions.EndSession(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
		}, identity.ErrSessionEnded},
		"signing out of the console": {func(t *testing.T, _ signin.Subject, s *signin.Session, g *signin.Grant) {
			if _, err := w.SignIn.Grants.Revoke(t.Context(), g.Refresh.Reveal(), signin.ClientConsole); err != nil {
				t.Fatal(err)
			}
			if countRecords(w, "sessions/"+s.ID) != 0 {
				t.Error("browser session still exists, want it ended")
			}
		}, identity.ErrSessionEnded},
		"a new password": {func(_ *testing.T, ann signin.Subject, _ *signin.Session, _ *signin.Grant) {
			w.Invite(ann)
		}, identity.ErrSessionEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ann := w.User("acme", strings.ReplaceAll(name, " ", "-"), "ann@example.com")
			s, g, token := console(t, w, ann)
			_, unused := code(t, w, ann)
			checkToken(t, w.Verifier, token, nil)
			end.end(t, ann, s, g)
			checkToken(t, w.Verifier, token, end.err)
			if _, err := w.SignIn.Grants.Refresh(t.Context(), g.Refresh.Reveal(), signin.ClientConsole); !errors.Is(err,
				signin.ErrInvalidGrant) {
				t.Errorf("refreshing: got %v, want %v", err, signin.ErrInvalidGrant)
			}
			if strings.HasPrefix(name, "signing out") {
				return // the code is of another browser session
			}
			if _, err := w.SignIn.Codes.UseCode(t.Context(), unused, signin.ClientConsole, redirect,
				verifier); !errors.Is(err, signin.ErrInvalidGrant) {
				t.Errorf("earlier code: got %v, want %v", err, signin.ErrInvalidGrant)
			}
		})
	}
}

func TestSessionsSurviveARestart(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	w.Invite(ann)
	g, token := device(t, w, ann)
	_, _, out := console(t, w, ann)
	if _, err := w.SignIn.Grants.Revoke(t.Context(), out, signin.ClientConsole); err != nil {
		t.Fatal(err) // Revoke ignores access tokens
	}

	fresh := identity.NewDirectory()
	fresh.PutUser(identity.User{Organization: ann.Organization, Name: ann.User, UID: ann.UID, Email: ann.Email})
	restarted := w.Replica(fresh)
	v := identity.NewVerifier(w.Issuer, fresh, identity.VerifierOptions{})
	checkToken(t, v, token, nil)
	next, err := restarted.Grants.Refresh(t.Context(), g.Refresh.Reveal(), signin.ClientCLI)
	if err != nil {
		t.Fatalf("refreshing after a restart: %v", err)
	}
	passwords := restarted.Passwords
	if _, err := passwords.Authenticate(t.Context(), "", "acme", "ANN@example.com", signintest.Password); err != nil {
		t.Errorf("password after a restart: got %v, want it accepted", err)
	}
	if state := restarted.People.StateOf(ann.UID, ann.Email); !state.Password {
		t.Errorf("after a restart: got %+v, want a password", state)
	}
	if err := restarted.Grants.EndGrant(t.Context(), next.ID); err != nil {
		t.Fatal(err)
	}
	checkToken(t, v, token, identity.ErrSessionEnded)
}

// TestReplicasFollowEachOther checks that a replica gets the sign-ins and sign-outs of
// another one.
func TestReplicasFollowEachOther(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	exists := identity.NewDirectory()
	exists.PutUser(identity.User{Organization: ann.Organization, Name: ann.User, UID: ann.UID, Email: ann.Email})
	other := w.Replica(exists)
	exists.SetSessionLoader(other.Grants)
	changed := make(chan string, 16)
	other.People.OnChange(func(_, user string) { changed <- user })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); other.Run(ctx) }()
	defer func() { cancel(); <-done }()

	w.Invite(ann)
	deadline := time.After(20 * time.Second)
	for !other.People.StateOf(ann.UID, ann.Email).Password {
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("other replica has not got the password")
		}
	}
	v := identity.NewVerifier(w.Issuer, exists, identity.VerifierOptions{})
	g, token := device(t, w, ann)
	principal := checkToken(t, v, token, nil) // also if the watch has not reported it yet
	if err := w.SignIn.Grants.EndGrant(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	for principal.Live() {
		select {
		case <-deadline:
			t.Fatal("session is still live at the other replica")
		case <-time.After(5 * time.Millisecond):
		}
	}
	checkToken(t, v, token, identity.ErrSessionEnded)
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	first, ends, err := w.SignIn.Links.Invite(t.Context(), "acme", "ann", "boss", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if state := w.SignIn.People.StateOf(ann.UID, ann.Email); state.Password || !state.Invited.Equal(ends) {
		t.Errorf("invited: got %+v, want a link until %s", state, ends)
	}
	second, _, err := w.SignIn.Links.Invite(t.Context(), "acme", "ann", "boss", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.SignIn.Passwords.Accept(t.Context(), first.Reveal(), signintest.Password); !errors.Is(err,
		signin.ErrLinkUsed) {
		t.Errorf("replaced link: got %v, want %v", err, signin.ErrLinkUsed)
	}
	for password, want := range map[string]error{
		"short": signin.ErrPasswordShort, strings.Repeat("long", 65): signin.ErrPasswordLong,
		"Ann@Example.COM": signin.ErrPasswordGuessable,
	} {
		if _, err := w.SignIn.Passwords.Accept(t.Context(), second.Reveal(), password); !errors.Is(err, want) {
			t.Errorf("password %.20q: got %v, want %v", password, err, want)
		}
	}
	if _, err := w.SignIn.Passwords.Accept(t.Context(), second.Reveal(), "zehn Zeichen, ü"); err != nil {
		t.Fatalf("valid password after invalid ones: %v", err)
	}
	passwords := w.SignIn.Passwords
	if of, err := passwords.Authenticate(t.Context(), "", "acme", "ann", "zehn Zeichen, ü"); err != nil || of != ann {
		t.Errorf("signing in: got %+v, %v, want %+v", of, err, ann)
	}
	if _, _, err := w.SignIn.Links.Invite(t.Context(), "acme", "nobody", "boss",
		time.Hour); errs.KindOf(err) != errs.NotFound {
		t.Errorf("inviting a missing user: got %v, want not found", err)
	}
	// The password is not valid for another e-mail address.
	w.Directory.PutUser(identity.User{Organization: "acme", Name: "ann", UID: ann.UID, Email: "new@example.com"})
	if _, err := w.SignIn.Passwords.Authenticate(t.Context(), "", "acme", "ann", "zehn Zeichen, ü"); !errors.Is(err,
		signin.ErrWrongPassword) {
		t.Errorf("password under another address: got %v, want %v", err, signin.ErrWrongPassword)
	}
	if state := w.SignIn.People.StateOf(ann.UID, "new@example.com"); state.Password {
		t.Errorf("under another address: got %+v, want no password", state)
	}
}

// TestEndedSessionsStayEnded changes the address of a user and restores the old one: the
// sessions stay ended, in this process and after a restart.
func TestEndedSessionsStayEnded(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	_, g, token := console(t, w, ann)
	stays := w.User("acme", "bob", "bob@example.com")
	_, other := device(t, w, stays)
	as := func(d *identity.Directory, email string) {
		d.PutUser(identity.User{Organization: ann.Organization, Name: ann.User, UID: ann.UID, Email: email})
	}
	fresh := identity.NewDirectory()
	as(fresh, "new@example.com")
	fresh.PutUser(identity.User{Organization: stays.Organization, Name: stays.User, UID: stays.UID, Email: stays.Email})
	w.Replica(fresh) // a restart with another address
	as(fresh, ann.Email)
	v := identity.NewVerifier(w.Issuer, fresh, identity.VerifierOptions{})
	checkToken(t, v, token, identity.ErrSessionEnded)
	checkToken(t, v, other, nil)

	as(w.Directory, "new@example.com")
	w.SignIn.People.Forget(ann.UID)
	as(w.Directory, ann.Email)
	checkToken(t, w.Verifier, token, identity.ErrSessionEnded)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.SignIn.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for deadline := time.After(20 * time.Second); countRecords(w, "grants/"+g.ID) != 0; {
		select {
		case <-deadline:
			t.Fatal("grant is still stored, want it removed")
		case <-time.After(5 * time.Millisecond):
		}
	}
	checkToken(t, w.Verifier, other, nil)
}

func TestDevices(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	s, _, err := w.SignIn.Sessions.BeginSession(t.Context(), ann, signin.MethodPassword)
	if err != nil {
		t.Fatal(err)
	}
	begin := func() *signin.Device {
		d, err := w.SignIn.Devices.BeginDevice(t.Context(), signin.ClientCLI, "192.0.2.7")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	poll := func(d *signin.Device, want error) {
		t.Helper()
		_, err := w.SignIn.Devices.PollDevice(t.Context(), d.Code.Reveal(), signin.ClientCLI)
		if !errors.Is(err, want) {
			t.Errorf("polling: got %v, want %v", err, want)
		}
	}
	d := begin()
	poll(d, signin.ErrPending)
	poll(d, signin.ErrSlowDown)
	typed := " " + strings.ToLower(strings.ReplaceAll(d.UserCode, "-", "")) + " "
	found, err := w.SignIn.Devices.DeviceOf(t.Context(), typed)
	if err != nil || found.Address != "192.0.2.7" || found.UserCode != d.UserCode {
		t.Fatalf("lower-case user code without a dash: got %+v, %v, want the device", found, err)
	}
	if err := w.SignIn.Devices.DecideDevice(t.Context(), d.UserCode, s, false); err != nil {
		t.Fatal(err)
	}
	poll(d, signin.ErrDeviceRejected)
	if err := w.SignIn.Devices.DecideDevice(t.Context(), d.UserCode, s, true); !errors.Is(err, signin.ErrNoDevice) {
		t.Errorf("second decision: got %v, want %v", err, signin.ErrNoDevice)
	}

	d = begin()
	if err := w.SignIn.Devices.DecideDevice(t.Context(), d.UserCode, s, true); err != nil {
		t.Fatal(err)
	}
	if _, err := w.SignIn.Devices.PollDevice(t.Context(), d.Code.Reveal(), signin.ClientConsole); !errors.Is(err,
		signin.ErrInvalidGrant) {
		t.Errorf("another client: got %v, want %v", err, signin.ErrInvalidGrant)
	}
	g, err := w.SignIn.Devices.PollDevice(t.Context(), d.Code.Reveal(), signin.ClientCLI)
	if err != nil {
		t.Fatal(err)
	}
	poll(d, signin.ErrInvalidGrant) // a device gets its grant once
	token := access(t, w, g)
	if err := w.SignIn.Sessions.EndSession(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	checkToken(t, w.Verifier, token, nil) // a device stays signed in after the browser session
}

func TestOldestSessionEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	s, _, token := console(t, w, ann)
	for range 50 {
		if _, _, err := w.SignIn.Sessions.BeginSession(t.Context(), ann, signin.MethodPassword); err != nil {
			t.Fatal(err)
		}
	}
	if n := countRecords(w, "sessions/"); n != 50 {
		t.Errorf("got %d sessions, want 50", n)
	}
	if countRecords(w, "sessions/"+s.ID) != 0 {
		t.Error("oldest session still exists, want it ended")
	}
	checkToken(t, w.Verifier, token, identity.ErrSessionEnded)
}

func TestSweepRemovesExpiredRecords(t *testing.T) {
	t.Parallel()
	w := signintest.New(t, func(o *signin.Options) { o.SessionLifetime = time.Nanosecond })
	ann, bob := w.User("acme", "ann", "ann@example.com"), w.User("acme", "bob", "bob@example.com")
	if _, _, err := w.SignIn.Sessions.BeginSession(t.Context(), ann, signin.MethodPassword); err != nil {
		t.Fatal(err) // the session has expired already
	}
	if _, _, err := w.SignIn.Links.AdminLink(t.Context(), -time.Second); err != nil {
		t.Fatal(err)
	}
	w.Invite(ann)
	if _, _, err := w.SignIn.Links.Invite(t.Context(), "acme", "bob", "boss", -time.Second); err != nil {
		t.Fatal(err)
	}
	w.Directory.DeleteUser(bob.Organization, bob.User, bob.UID)
	if err := w.SignIn.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := w.Records(); !slices.Equal(left, []string{"people/" + ann.UID}) {
		t.Errorf("left are %v, want Ann's password only", left)
	}
	if state := w.SignIn.People.StateOf(ann.UID, ann.Email); !state.Password {
		t.Errorf("Ann: got %+v, want a password", state)
	}
}

func TestRecordsAreSealed(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	w.Invite(ann)
	_, g, _ := console(t, w, ann)
	res, err := w.Etcd.Get(t.Context(), signintest.Prefix, prefixed())
	if err != nil || len(res.Kvs) < 3 {
		t.Fatalf("got %v, %v, want records", res, err)
	}
	for _, kv := range res.Kvs {
		for _, secret := range []string{"ann@example.com", "argon2", g.Refresh.Reveal()} {
			if strings.Contains(string(kv.Value), secret) {
				t.Errorf("record %.20s contains %.10s in clear text", kv.Key, secret)
			}
		}
		// A record that was moved to another key cannot be decrypted.
		if _, err := w.Etcd.Put(t.Context(), string(kv.Key)+"x", string(kv.Value)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Store().Get(t.Context(), strings.TrimPrefix(string(kv.Key), signintest.Prefix)+
			"x"); err == nil {
			t.Error("moved record was decrypted, want an error")
		}
	}
}
