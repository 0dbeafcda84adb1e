package identity_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
)

const (
	api   = identitytest.IssuerURL
	plane = "urn:vendor:messaging:acme:prod"
)

func verify(t *testing.T, w *identitytest.World, token string, want error, audiences ...string) *identity.Principal {
	t.Helper()
	p, err := w.Verifier.Authenticate(context.Background(), token, audiences...)
	if !errors.Is(err, want) {
		t.Fatalf("Authenticate for %v = %v, want %v", audiences, err, want)
	}
	if want != nil && errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("kind of %v is %v, want %v", err, errs.KindOf(err), errs.Unauthenticated)
	}
	return p
}

func TestVerifyAccessToken(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "ci")
	token := w.Token(account, api)
	for range 2 { // the second time from the cache
		p := verify(t, w, token, nil, "https://elsewhere", api)
		if p.Name != "ci@acme.127.0.0.1:8080" || p.Organization != "acme" || p.ServiceAccount != "ci" ||
			p.UID != account.UID ||
			p.Admin || p.System || p.KeyID != "" || p.Instance != "" || p.ExpiresAt.IsZero() || p.TokenID == "" {
			t.Errorf("principal = %+v, want service account ci of acme with uid %s and no rights", p, account.UID)
		}
		if !p.Live() {
			t.Error("Live = false, want true")
		}
	}
	if w.Verifier.Cached() != 1 {
		t.Errorf("%d tokens cached, want 1", w.Verifier.Cached())
	}
}

func TestAudienceDecidesWhereATokenWorks(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "ci")
	_, instanceKey := w.Key(account, "prod")
	_, orgKey := w.Key(account, "")
	apiToken, planeToken := w.Token(account, api), w.Token(account, plane)
	resources := []string{api, identity.AnyOrganization} // the audiences of the resource API
	tests := map[string]struct {
		token     string
		audiences []string
		ok        bool
	}{
		"API token on the resource API":        {apiToken, resources, true},
		"API token on a data plane":            {apiToken, []string{plane}, false},
		"API token where nothing is accepted":  {apiToken, nil, false},
		"API token with an empty audience":     {apiToken, []string{""}, false},
		"plane token on its plane":             {planeToken, []string{plane}, true},
		"plane token on another instance":      {planeToken, []string{"urn:vendor:messaging:acme:dev"}, false},
		"plane token in another organization":  {planeToken, []string{"urn:vendor:messaging:evil:prod"}, false},
		"plane token on the resource API":      {planeToken, resources, false},
		"instance key on its plane":            {instanceKey, []string{plane}, true},
		"instance key on another instance":     {instanceKey, []string{"urn:vendor:messaging:acme:production"}, false},
		"instance key on the resource API":     {instanceKey, resources, false},
		"organization key on a plane":          {orgKey, []string{plane}, true},
		"organization key on another plane":    {orgKey, []string{"urn:vendor:messaging:acme:dev"}, true},
		"organization key on the resource API": {orgKey, resources, true},
		"plane token somewhere there":          {planeToken, []string{identity.AnyInstance("acme")}, true},
		"plane token somewhere else":           {planeToken, []string{identity.AnyInstance("evil")}, false},
		"organization key somewhere there":     {orgKey, []string{identity.AnyInstance("acme")}, true},
		"organization key somewhere else":      {orgKey, []string{identity.AnyInstance("evil")}, false},
		"API token somewhere":                  {apiToken, []string{identity.AnyInstance("acme")}, false},
		"organization key elsewhere":           {orgKey, []string{"urn:vendor:messaging:evil:prod"}, false},
		"organization key, longer name":        {orgKey, []string{"urn:vendor:messaging:acme2:prod"}, false},
		"organization key, API address only":   {orgKey, []string{api}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want error
			if !tc.ok {
				want = identity.ErrWrongAudience
			}
			verify(t, w, tc.token, want, tc.audiences...)
		})
	}
}

func TestVerifyAPIKey(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "root", func(a *identity.Account) { a.System = true })
	key, token, err := w.Issuer.APIKey(identity.KeyRequest{
		Account: account, Name: "k", Instance: "prod",
		Metadata: map[string]string{"team": "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	verify(t, w, token.Reveal(), identity.ErrKeyUnknown, plane) // not in the directory yet
	w.Directory.PutKey(key)
	p := verify(t, w, token.Reveal(), nil, plane)
	if p.KeyID != key.ID || p.KeyName != "k" || p.Instance != "prod" || p.Metadata["team"] != "x" ||
		!p.ExpiresAt.IsZero() {
		t.Errorf("principal = %+v, want key %s named k for instance prod", p, key.ID)
	}
	if p.System || !p.Admin {
		t.Error("key of a system administrator must administer only its own organization")
	}
}

func TestRevocationAndDeletionAreInForceImmediately(t *testing.T) {
	t.Parallel()
	type bundle struct {
		*identitytest.World
		account *identity.Account
		key     identity.Key
	}
	tests := map[string]struct {
		kill             func(bundle)
		keyErr, tokenErr error
	}{
		"key revoked": {
			func(b bundle) { k := b.key; k.Revoked = true; b.Directory.PutKey(k) },
			identity.ErrKeyRevoked, nil,
		},
		"key deleted": {func(b bundle) { b.Directory.DeleteKey(b.key.ID) }, identity.ErrKeyRevoked, nil},
		"account deleted": {
			func(b bundle) { b.Directory.DeleteAccount("acme", "ci", b.account.UID) },
			identity.ErrAccountGone, identity.ErrAccountGone,
		},
		"account recreated": {
			func(b bundle) { a := *b.account; a.UID = "new"; b.Directory.PutAccount(a) },
			identity.ErrAccountGone, identity.ErrAccountGone,
		},
		"credentials renewed": {
			func(b bundle) { a := *b.account; a.ClientID = "new"; b.Directory.PutAccount(a) }, nil,
			identity.ErrAccountGone,
		},
		"mere resync": {func(b bundle) { b.Directory.PutAccount(*b.account); b.Directory.PutKey(b.key) }, nil, nil},
		"same secret changed": {
			func(b bundle) { a := *b.account; a.SecretHash = "x"; b.Directory.PutAccount(a) }, nil,
			nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := identitytest.New(t)
			account, _ := w.Account("acme", "ci")
			key, keyToken := w.Key(account, "prod")
			token := w.Token(account, plane)
			cached := verify(t, w, keyToken, nil, plane)
			verify(t, w, token, nil, plane)
			tc.kill(bundle{w, account, key})
			for range 2 {
				verify(t, w, keyToken, tc.keyErr, plane)
				verify(t, w, token, tc.tokenErr, plane)
			}
			if name != "same secret changed" && name != "credentials renewed" && cached.Live() != (tc.keyErr == nil) {
				t.Errorf("principal of a waiting call: Live = %v, want %v", cached.Live(), tc.keyErr == nil)
			}
		})
	}
}

func TestTokensOfADeletedAccountAreRejectedAfterItIsRecreated(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	old, _ := w.Account("acme", "ci")
	token := w.Token(old, api)
	oldKey, keyToken := w.Key(old, "")
	verify(t, w, token, nil, api)
	w.Directory.DeleteAccount("acme", "ci", old.UID)
	// Also with the same client id, which NewCredentials never returns twice.
	recreated := *old
	recreated.UID = "another"
	w.Directory.PutAccount(recreated)
	verify(t, w, token, identity.ErrAccountGone, api)
	w.Directory.PutKey(oldKey) // by an informer that is late
	verify(t, w, keyToken, identity.ErrAccountGone, plane)
	verify(t, w, w.Token(&recreated, api), nil, api)
}

func TestAdminFlagIsTakenFromTheLiveAccount(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "ci", func(a *identity.Account) { a.Admin = true })
	token := w.Token(account, api)
	if !verify(t, w, token, nil, api).Admin {
		t.Fatal("principal is not an administrator")
	}
	account.Admin = false
	w.Directory.PutAccount(*account)
	if verify(t, w, token, nil, api).Admin {
		t.Error("cached principal is still an administrator")
	}
}

func TestExpiryIsCheckedOnEveryUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := identitytest.New(t)
		account, _ := w.Account("acme", "ci")
		token := w.Token(account, plane) // an hour
		key, keyToken, err := w.Issuer.APIKey(identity.KeyRequest{
			Account: account, Instance: "prod",
			ExpiresAt: time.Now().Add(time.Minute),
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Directory.PutKey(key)
		p := verify(t, w, keyToken.Reveal(), nil, plane)
		verify(t, w, token, nil, plane)
		time.Sleep(time.Minute - time.Millisecond) // the bubble's clock
		verify(t, w, keyToken.Reveal(), nil, plane)
		time.Sleep(time.Millisecond)
		verify(t, w, keyToken.Reveal(), identity.ErrTokenExpired, plane)
		if p.Live() {
			t.Error("principal of a waiting call is still live")
		}
		verify(t, w, token, nil, plane)
		time.Sleep(time.Hour)
		verify(t, w, token, identity.ErrTokenExpired, plane)
		verify(t, w, token, identity.ErrTokenExpired, plane)
	})
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "ci")
	v := identity.NewVerifier(w.Issuer, w.Directory, identity.VerifierOptions{CacheSize: 128})
	first := w.Token(account, api)
	for i := range 500 {
		if _, err := v.Authenticate(context.Background(), w.Token(account, api), api); err != nil {
			t.Fatal(i, err)
		}
	}
	if n := v.Cached(); n > 128 || n < 64 {
		t.Errorf("%d tokens cached, want 64 to 128", n)
	}
	if _, err := v.Authenticate(context.Background(), first, api); err != nil {
		t.Errorf("token that is not cached: %v", err)
	}
}

func TestOnlyAPIKeysSurviveAChangeOfAddress(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "ci")
	moved, err := identity.NewIssuer("https://new.example.com", w.Keys)
	if err != nil {
		t.Fatal(err)
	}
	token, key := w.Token(account, api), func() string { _, k := w.Key(account, "prod"); return k }()
	verifier := identity.NewVerifier(moved, w.Directory, identity.VerifierOptions{})
	if _, err := verifier.Authenticate(context.Background(), token, api); !errors.Is(err, identity.ErrInvalidToken) {
		t.Errorf("access token: error = %v, want %v", err, identity.ErrInvalidToken)
	}
	if p, err := verifier.Authenticate(context.Background(), key, plane); err != nil ||
		p.Name != "ci@acme.new.example.com" {
		t.Errorf("API key: %v, %v; want the principal under its new name", p, err)
	}
}

func TestRevocationRacesWithReaders(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "ci")
	for range 20 {
		key, token := w.Key(account, "prod")
		verify(t, w, token, nil, plane)
		revoked := make(chan struct{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case <-revoked:
						// The revoking call has returned, so the token must be rejected.
						if _, err := w.Verifier.Authenticate(context.Background(), token, plane); err == nil {
							t.Error("accepted after the revocation returned")
						}
						return
					default:
						_, _ = w.Verifier.Authenticate(context.Background(), token, plane)
					}
				}
			})
		}
		key.Revoked = true
		w.Directory.PutKey(key)
		close(revoked)
		wg.Wait()
	}
}

func BenchmarkVerify(b *testing.B) {
	w := identitytest.New(b)
	account, _ := w.Account("acme", "ci")
	_, key := w.Key(account, "prod")
	token := w.Token(account, plane)
	ctx := context.Background()
	for name, text := range map[string]string{"access token hit": token, "API key hit": key} {
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(float64(len(text)), "bytes/token")
			for b.Loop() {
				if _, err := w.Verifier.Authenticate(ctx, text, plane); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("parallel hits of 1000 tokens", func(b *testing.B) {
		tokens := make([]string, 1000)
		for i := range tokens {
			tokens[i] = w.Token(account, plane)
		}
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if _, err := w.Verifier.Authenticate(ctx, tokens[i%len(tokens)], plane); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("miss", func(b *testing.B) {
		for b.Loop() {
			v := identity.NewVerifier(w.Issuer, w.Directory, identity.VerifierOptions{})
			if _, err := v.Authenticate(ctx, token, plane); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("issue", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := w.Issuer.AccessToken(account, time.Hour, plane); err != nil {
				b.Fatal(err)
			}
		}
	})
}
