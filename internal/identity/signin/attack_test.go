package signin_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/identity"
	"freshet/internal/identity/signin"
	"freshet/internal/identity/signin/signintest"
	"freshet/test/tally"
)

func prefixed() clientv3.OpOption { return clientv3.WithPrefix() }

// race calls try n times concurrently and returns the number of successes.
func race(n int, try func() error) (successes int) {
	var ok atomic.Int32
	var all sync.WaitGroup
	start := make(chan struct{})
	for range n {
		all.Go(func() {
			<-start
			if try() == nil {
				ok.Add(1)
			}
		})
	}
	close(start)
	all.Wait()
	return int(ok.Load())
}

// TestAttackCodeReplay uses stolen codes: twice, concurrently, with another verifier,
// without one, with another redirect URI, as another client.
func TestAttackCodeReplay(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	attempts, successes := 0, 0
	use := func(code, client, redirect, verifier string) error {
		_, err := w.SignIn.Codes.UseCode(t.Context(), code, client, redirect, verifier)
		return err
	}
	for range 10 {
		_, token := code(t, w, ann)
		g, err := w.SignIn.Codes.UseCode(t.Context(), token, signin.ClientConsole, redirect, verifier)
		if err != nil {
			t.Fatal(err)
		}
		bearer := access(t, w, g)
		attempts++
		if use(token, signin.ClientConsole, redirect, verifier) == nil {
			successes++
		}
		checkToken(t, w.Verifier, bearer, identity.ErrSessionEnded) // one of the two clients stole the code
	}
	for range 10 {
		_, token := code(t, w, ann)
		attempts += 7
		if n := race(8, func() error { return use(token, signin.ClientConsole, redirect, verifier) }); n > 1 {
			successes += n - 1
		}
	}
	for name, bad := range map[string][3]string{
		"another verifier": {signin.ClientConsole, redirect, verifier + "x"},
		"no verifier":      {signin.ClientConsole, redirect, ""},
		"the challenge":    {signin.ClientConsole, redirect, challenge(verifier)},
		"another address":  {signin.ClientConsole, redirect + "x", verifier},
		"another client":   {signin.ClientCLI, redirect, verifier},
	} {
		_, token := code(t, w, ann)
		attempts += 2
		if use(token, bad[0], bad[1], bad[2]) == nil {
			successes++
			t.Errorf("%s: the code was accepted", name)
		}
		// The failed attempt deleted the code.
		if use(token, signin.ClientConsole, redirect, verifier) == nil {
			successes++
			t.Errorf("%s: the code was accepted afterwards", name)
		}
	}
	tally.Attack(t, "use a stolen authorization code", attempts, successes)
}

// TestAttackRefreshReuse uses stolen refresh tokens: the second use ends the grant for both
// clients, if the successor was used or the grace period has passed.
func TestAttackRefreshReuse(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	later := signintest.New(t, func(o *signin.Options) { o.RefreshGrace = time.Nanosecond })
	bob := later.User("acme", "bob", "bob@example.com")
	attempts, successes := 0, 0
	steal := func(w *signintest.World, of signin.Subject, used bool) {
		g, _ := device(t, w, of)
		stolen := g.Refresh.Reveal()
		next, err := w.SignIn.Grants.Refresh(t.Context(), stolen, signin.ClientCLI)
		if err == nil && used {
			next, err = w.SignIn.Grants.Refresh(t.Context(), next.Refresh.Reveal(), signin.ClientCLI)
		}
		if err != nil {
			t.Fatal(err)
		}
		bearer := access(t, w, next)
		attempts++
		_, err = w.SignIn.Grants.Refresh(t.Context(), stolen, signin.ClientCLI)
		var reused *signin.ReusedTokenError
		if !errors.As(err, &reused) || reused.Subject != of {
			successes++
			t.Errorf("stolen token: got %v, want a Reused error of %v", err, of)
		}
		checkToken(t, w.Verifier, bearer, identity.ErrSessionEnded)
		if _, err := w.SignIn.Grants.Refresh(t.Context(), next.Refresh.Reveal(), signin.ClientCLI); err == nil {
			t.Error("next token is still valid, want the session ended")
		}
	}
	for range 10 {
		steal(w, ann, true)
		steal(later, bob, false)
	}
	// Concurrent uses: a token has only one successor.
	for range 10 {
		g, _ := device(t, w, ann)
		attempts += 7
		var mu sync.Mutex
		followed := map[string]bool{}
		race(8, func() error {
			next, err := w.SignIn.Grants.Refresh(t.Context(), g.Refresh.Reveal(), signin.ClientCLI)
			if err == nil {
				mu.Lock()
				followed[next.Refresh.Reveal()] = true
				mu.Unlock()
			}
			return err
		})
		if len(followed) != 1 {
			successes += len(followed)
			t.Errorf("got %d successors of one token, want 1", len(followed))
		}
	}
	g, _ := device(t, w, ann)
	attempts++
	if _, err := w.SignIn.Grants.Refresh(t.Context(), g.Refresh.Reveal(), signin.ClientConsole); err == nil {
		successes++
		t.Error("another client used the refresh token")
	}
	tally.Attack(t, "use a refresh token twice", attempts, successes)
}

// TestAttackLinkReplay uses links twice, concurrently, after they expired, of deleted users,
// and one kind of link as the other kind.
func TestAttackLinkReplay(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	w.User("acme", "ann", "ann@example.com")
	attempts, successes := 0, 0
	invite := func(lifetime time.Duration) string {
		token, _, err := w.SignIn.Links.Invite(t.Context(), "acme", "ann", "boss", lifetime)
		if err != nil {
			t.Fatal(err)
		}
		return token.Reveal()
	}
	accept := func(token string) error {
		_, err := w.SignIn.Passwords.Accept(t.Context(), token, signintest.Password)
		return err
	}
	follow := func(token string) error {
		_, err := w.SignIn.Links.FollowLink(t.Context(), token)
		return err
	}
	refused := func(name string, err error) {
		t.Helper()
		attempts++
		if !errors.Is(err, signin.ErrLinkUsed) {
			successes++
			t.Errorf("%s: got %v, want %v", name, err, signin.ErrLinkUsed)
		}
	}
	token := invite(time.Hour)
	attempts += 5
	if n := race(6, func() error { return accept(token) }); n != 1 {
		successes += max(1, n-1)
		t.Errorf("%d have used one invitation, want 1", n)
	}
	refused("a used invitation", accept(token))
	refused("an expired invitation", accept(invite(-time.Second)))
	refused("an invitation for the administrator's link", follow(invite(time.Hour)))
	link, _, err := w.SignIn.Links.AdminLink(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	refused("the administrator's link for an invitation", accept(link.Reveal()))
	attempts += 7
	if n := race(8, func() error { return follow(link.Reveal()) }); n != 1 {
		successes += max(1, n-1)
		t.Errorf("%d have used one link, want 1", n)
	}
	late, _, err := w.SignIn.Links.AdminLink(t.Context(), -time.Second)
	if err != nil {
		t.Fatal(err)
	}
	refused("an expired link", follow(late.Reveal()))
	for _, guess := range []string{"", "x", "../people/x", string(make([]byte, 1<<16))} {
		refused("a guess", follow(guess))
		refused("a guess", accept(guess))
	}
	token = invite(time.Hour)
	w.User("acme", "ann", "mallory@example.com") // created again, with another address
	refused("an invitation of a deleted user", accept(token))
	tally.Attack(t, "use a one-time link that is not good", attempts, successes)
}

// TestAttackUserEnumeration checks that existing and missing users cannot be distinguished:
// neither by the error nor by the number of computed hashes, which dominates the time.
func TestAttackUserEnumeration(t *testing.T) {
	t.Parallel()
	w := signintest.New(t)
	ann := w.User("acme", "ann", "ann@example.com")
	w.Invite(ann)
	w.User("acme", "bob", "bob@example.com") // without a password
	w.Directory.PutUser(identity.User{
		Organization: "acme", Name: "eve", UID: "e", Email: "eve@example.com",
		Barred: true,
	})
	attempts, successes := 0, 0
	for _, principal := range []string{
		"ann", "ann@example.com", "bob", "eve", "nobody",
		"nobody@example.com", "", "uid",
	} {
		for _, organization := range []string{"acme", "other", ""} {
			before := w.SignIn.Passwords.Hashed()
			_, err := w.SignIn.Passwords.Authenticate(t.Context(), "", organization, principal, "a wrong password")
			attempts++
			if !errors.Is(err, signin.ErrWrongPassword) || err.Error() != signin.ErrWrongPassword.Error() ||
				w.SignIn.Passwords.Hashed()-before != 1 {
				successes++
				t.Errorf("%s/%s: got %v after %d hashes, want %v after 1", organization, principal, err,
					w.SignIn.Passwords.Hashed()-before, signin.ErrWrongPassword)
			}
		}
	}
	tally.Attack(t, "find out who has an account", attempts, successes)
}
