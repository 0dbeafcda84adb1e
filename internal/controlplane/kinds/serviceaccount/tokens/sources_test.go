package tokens_test

import (
	"context"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/kinds/serviceaccount/tokens"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
	"freshet/test/tally"
)

// tokenWorld is an identity system with a token subresource.
type tokenWorld struct {
	*identitytest.World
	t      *testing.T
	create rest.NamedCreater
}

func newTokenWorld(t *testing.T) *tokenWorld {
	t.Helper()
	w := identitytest.New(t)
	create, ok := tokens.New(tokens.Options{
		Issuer: w.Issuer, Directory: w.Directory, Authorizer: clerk{},
		Audiences: identity.Audiences{Addresses: []string{identitytest.IssuerURL}},
	}).Open(v1alpha1.Resource("serviceaccounts"), lateAccounts{func() {}}, nil).(rest.NamedCreater)
	if !ok {
		t.Fatal("storage does not implement rest.NamedCreater")
	}
	return &tokenWorld{World: w, t: t, create: create}
}

func (w *tokenWorld) authenticate(token string) (*identity.Principal, error) {
	return w.Verifier.Authenticate(w.t.Context(), token, identitytest.IssuerURL, identity.AnyOrganization)
}

// request requests a token of an account with a credential.
func (w *tokenWorld) request(credential, account string, seconds int64) (*authenticationv1.TokenRequest, error) {
	w.t.Helper()
	principal, err := w.authenticate(credential)
	if err != nil {
		w.t.Fatalf("credential of the request: %v", err)
	}
	ctx := request.WithUser(request.WithNamespace(context.Background(), "acme"), caller.Caller{Principal: principal})
	out, err := w.create.Create(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, nil, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return out.(*authenticationv1.TokenRequest), nil
}

// must requests a token and returns it.
func (w *tokenWorld) must(credential, account string) string {
	w.t.Helper()
	out, err := w.request(credential, account, 3600)
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Status.Token
}

func (w *tokenWorld) session(id string, ends time.Time) string {
	w.t.Helper()
	w.Directory.PutUser(identity.User{Organization: "acme", Name: "ann", UID: "u", Email: "ann@example.com"})
	s := identity.Session{
		ID: id, Organization: "acme", User: "ann", UID: "u", Email: "ann@example.com", Ends: ends,
	}
	w.Directory.PutSession(s)
	token, _, err := w.Issuer.SessionToken(&s, nil, 10*time.Minute, identitytest.IssuerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	return token.Reveal()
}

// TestAttackTokenOutlivesItsSource requests tokens with each kind of credential, directly and
// with a chain of tokens, ends the credential, and uses the tokens afterwards.
func TestAttackTokenOutlivesItsSource(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for name, begin := range map[string]func(w *tokenWorld, clerk *identity.Account) (credential string, end func()){
		"session that ends": func(w *tokenWorld, _ *identity.Account) (string, func()) {
			return w.session("s", time.Now().Add(time.Hour)), func() { w.Directory.EndSession("s") }
		},
		"user that is deleted": func(w *tokenWorld, _ *identity.Account) (string, func()) {
			return w.session("s", time.Now().Add(time.Hour)), func() { w.Directory.DeleteUser("acme", "ann", "u") }
		},
		"user that is barred": func(w *tokenWorld, _ *identity.Account) (string, func()) {
			return w.session("s", time.Now().Add(time.Hour)), func() {
				w.Directory.PutUser(identity.User{
					Organization: "acme", Name: "ann", UID: "u", Email: "ann@example.com", Barred: true, Revision: 9,
				})
			}
		},
		"API key that is revoked": func(w *tokenWorld, a *identity.Account) (string, func()) {
			key, token := w.Key(a, "")
			return token, func() { key.Revoked = true; w.Directory.PutKey(key) }
		},
		"API key that is deleted": func(w *tokenWorld, a *identity.Account) (string, func()) {
			key, token := w.Key(a, "")
			return token, func() { w.Directory.DeleteKey(key.ID) }
		},
		"account that is deleted": func(w *tokenWorld, a *identity.Account) (string, func()) {
			return w.Token(a, identitytest.IssuerURL), func() { w.Directory.DeleteAccount("acme", a.Name, a.UID) }
		},
		"account of an API key that is deleted": func(w *tokenWorld, a *identity.Account) (string, func()) {
			_, token := w.Key(a, "")
			return token, func() { w.Directory.DeleteAccount("acme", a.Name, a.UID) }
		},
		"credentials that are rotated": func(w *tokenWorld, a *identity.Account) (string, func()) {
			return w.Token(a, identitytest.IssuerURL), func() {
				next := *a
				next.ClientID, next.Revision = "another", 9
				w.Directory.PutAccount(next)
			}
		},
		"signing key that is withdrawn": func(w *tokenWorld, a *identity.Account) (string, func()) {
			leaked := w.Keys.IDs()
			token := w.Token(a, identitytest.IssuerURL)
			w.RotateKeys()
			w.RotateKeys() // the second rotation makes the new key the active one

			return token, func() {
				if err := w.Keys.Withdraw(t.Context(), leaked...); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		w := newTokenWorld(t)
		clerk, _ := w.Account("acme", "clerk")
		w.Account("acme", "robot")
		w.Account("acme", "other")
		credential, end := begin(w, clerk)
		chain := []string{w.must(credential, "robot")}
		for _, account := range []string{"other", "other", "robot", "other"} {
			chain = append(chain, w.must(chain[len(chain)-1], account))
		}
		for i, token := range chain {
			if _, err := w.authenticate(token); err != nil {
				t.Fatalf("%s: token %d: %v", name, i, err)
			}
		}
		running, err := w.authenticate(chain[len(chain)-1])
		if err != nil {
			t.Fatal(err)
		}
		end()
		for i, token := range chain {
			attempts++
			if _, err := w.authenticate(token); err == nil {
				successes++
				t.Errorf("%s: token %d of the chain outlived it", name, i)
			}
		}
		if running.Live() {
			successes++
			t.Errorf("%s: a running call outlived it", name)
		}
	}
	tally.Attack(t, "tokens that outlive the credential that requested them", attempts, successes)
}

// TestAttackTokenRenewsItself requests tokens with tokens: none may expire later than the first
// credential.
func TestAttackTokenRenewsItself(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for name, begin := range map[string]func(*tokenWorld, *identity.Account) (credential string, ends time.Time){
		"access token": func(w *tokenWorld, a *identity.Account) (string, time.Time) {
			return w.Token(a, identitytest.IssuerURL), time.Now().Add(time.Hour)
		},
		"session": func(w *tokenWorld, _ *identity.Account) (string, time.Time) {
			ends := time.Now().Add(30 * time.Minute)
			return w.session("s", ends), ends
		},
		"API key": func(w *tokenWorld, a *identity.Account) (string, time.Time) {
			ends := time.Now().Add(20 * time.Minute)
			key, token, err := w.Issuer.APIKey(identity.KeyRequest{Account: a, Name: "k", ExpiresAt: ends})
			if err != nil {
				t.Fatal(err)
			}
			w.Directory.PutKey(key)
			return token.Reveal(), ends
		},
		"replaced credentials": func(w *tokenWorld, a *identity.Account) (string, time.Time) {
			token, ends := w.Token(a, identitytest.IssuerURL), time.Now().Add(15*time.Minute)
			next := *a
			next.ClientID, next.Revision = "next", 9
			next.Replaced = identity.Client{ID: a.ClientID, SecretHash: a.SecretHash, Ends: ends}
			w.Directory.PutAccount(next)
			return token, ends
		},
	} {
		w := newTokenWorld(t)
		clerk, _ := w.Account("acme", "clerk")
		credential, ends := begin(w, clerk)
		for range 20 { // an account that requests tokens for itself has one source
			out, err := w.request(credential, "clerk", 86400)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			attempts++
			if got := out.Status.ExpirationTimestamp.Time; got.After(ends) {
				successes++
				t.Errorf("%s: got a token until %v, want at most %v", name, got, ends)
			}
			credential = out.Status.Token
		}
	}
	tally.Attack(t, "tokens that renew themselves", attempts, successes)
}

// TestTokenWithoutASource checks that the operator, who has no credential that ends, gets a token
// of the requested lifetime.
func TestTokenWithoutASource(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	w.Account("acme", "robot")
	seconds := int64(7200)
	ctx := request.WithUser(request.WithNamespace(t.Context(), "acme"),
		caller.Caller{Principal: &identity.Principal{Name: "operator", System: true}})
	out, err := w.create.Create(ctx, "robot", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token := out.(*authenticationv1.TokenRequest)
	if left := time.Until(token.Status.ExpirationTimestamp.Time); left < 7100*time.Second {
		t.Errorf("got a token for %v, want two hours", left)
	}
	if _, err := w.authenticate(token.Status.Token); err != nil {
		t.Error(err)
	}
}

// TestTokenChainIsBounded checks that a token cannot depend on any number of credentials.
func TestTokenChainIsBounded(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	for _, name := range names {
		w.Account("acme", name)
	}
	first, _ := w.Directory.Account("acme", "a")
	credential := w.Token(first, identitytest.IssuerURL)
	depth := 0
	for _, name := range names[1:] {
		out, err := w.request(credential, name, 3600)
		if err != nil {
			if !apierrors.IsForbidden(err) {
				t.Errorf("got %v, want forbidden", err)
			}
			break
		}
		depth++
		credential = out.Status.Token
	}
	if depth != 8 {
		t.Errorf("got a chain of %d tokens, want 8", depth)
	}
}
