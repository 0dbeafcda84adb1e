package openid_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"freshet/internal/identity"
	"freshet/internal/identity/openid"
	"freshet/test/tally"
)

// provider is a fake OpenID provider; test/clients/dex tests a real one.
type provider struct {
	t          *testing.T
	url        string
	key        *rsa.PrivateKey
	signingKey *rsa.PrivateKey // the signing key; key unless the test forges tokens
	claims     map[string]any
	form       url.Values // of the last token request
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, signingKey: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.write(w, map[string]any{
			"issuer": p.url, "authorization_endpoint": p.url + "/auth", "token_endpoint": p.url + "/token",
			"jwks_uri":                              p.url + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		p.write(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{
			Key: &p.key.PublicKey, KeyID: "k", Algorithm: "RS256",
			Use: "sig",
		}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		p.form = r.Form
		answer := map[string]any{"access_token": "a", "token_type": "Bearer"}
		if p.claims != nil {
			answer["id_token"] = p.sign()
		}
		p.write(w, answer)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *provider) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Error(err)
	}
}

func (p *provider) sign() string {
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.RS256,
		Key:       jose.JSONWebKey{Key: p.signingKey, KeyID: "k"},
	}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	payload, err := json.Marshal(p.claims)
	if err != nil {
		p.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

func (p *provider) client() *openid.Provider {
	return openid.New(openid.Options{
		Issuer: p.url, ClientID: "freshet", ClientSecret: identity.NewSecret("s"),
		RedirectURL: "http://freshet/oauth/callback", Domains: []string{"example.com"},
	})
}

// TestAttackForgedProviderResponses checks that Finish rejects forged and invalid responses of a provider.
func TestAttackForgedProviderResponses(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	attempts, successes := 0, 0
	for name, tc := range map[string]struct {
		change func(c map[string]any, p *provider)
		state  string // "" for the right one
		want   error  // nil: Finish must accept it
	}{
		"valid":               {func(map[string]any, *provider) {}, "", nil},
		"verified, as string": {func(c map[string]any, _ *provider) { c["email_verified"] = "true" }, "", nil},
		"not verified": {
			func(c map[string]any, _ *provider) { c["email_verified"] = false }, "",
			openid.ErrNoVerifiedEmail,
		},
		"email_verified is missing": {
			func(c map[string]any, _ *provider) { delete(c, "email_verified") }, "",
			openid.ErrNoVerifiedEmail,
		},
		"no address": {func(c map[string]any, _ *provider) { delete(c, "email") }, "", openid.ErrNoVerifiedEmail},
		"another domain": {
			func(c map[string]any, _ *provider) { c["email"] = "ann@evil.example" }, "",
			openid.ErrNoVerifiedEmail,
		},
		"a domain with the same end": {
			func(c map[string]any, _ *provider) { c["email"] = "ann@evil-example.com" }, "",
			openid.ErrNoVerifiedEmail,
		},
		"a domain after another": {
			func(c map[string]any, _ *provider) { c["email"] = "ann@evil.example@example.com" },
			"", openid.ErrNoVerifiedEmail,
		},
		"another nonce": {func(c map[string]any, _ *provider) { c["nonce"] = "other" }, "", openid.ErrNotConfirmed},
		"no nonce":      {func(c map[string]any, _ *provider) { delete(c, "nonce") }, "", openid.ErrNotConfirmed},
		"for another application": {
			func(c map[string]any, _ *provider) { c["aud"] = "other" }, "",
			openid.ErrNotConfirmed,
		},
		"of another issuer": {
			func(c map[string]any, _ *provider) { c["iss"] = "https://evil.example" }, "",
			openid.ErrNotConfirmed,
		},
		"expired": {
			func(c map[string]any, _ *provider) { c["exp"] = time.Now().Add(-time.Hour).Unix() }, "",
			openid.ErrNotConfirmed,
		},
		"another key": {func(_ map[string]any, p *provider) {
			other, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				t.Fatal(err)
			}
			p.signingKey = other
		}, "", openid.ErrNotConfirmed},
		"no id token":             {func(_ map[string]any, p *provider) { p.claims = nil }, "", openid.ErrNotConfirmed},
		"another browser's state": {func(map[string]any, *provider) {}, "other", openid.ErrNotConfirmed},
	} {
		client := p.client()
		address, login, err := client.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(address)
		if err != nil || at.Query().Get("code_challenge_method") != "S256" || at.Query().Get("state") != login.State ||
			at.Query().Get("nonce") != login.Nonce {
			t.Fatalf("%s: browser is redirected to %s, want state, nonce and S256", name, address)
		}
		p.signingKey = p.key
		p.claims = map[string]any{
			"iss": p.url, "sub": "1", "aud": "freshet", "exp": time.Now().Add(time.Hour).Unix(),
			"iat":   time.Now().Unix(),
			"nonce": login.Nonce, "email": "Ann@example.com", "email_verified": true,
		}
		tc.change(p.claims, p)
		state := login.State
		if tc.state != "" {
			state = tc.state
		}
		email, err := client.Finish(t.Context(), login, state, "code")
		if tc.want == nil {
			if err != nil || email != "Ann@example.com" || p.form.Get("code_verifier") != login.Verifier {
				t.Errorf("%s: got %q, %v, want the e-mail address", name, email, err)
			}
			continue
		}
		attempts++
		if !errors.Is(err, tc.want) || email != "" {
			successes++
			t.Errorf("%s: got %q, %v, want %v", name, email, err, tc.want)
		}
	}
	tally.Attack(t, "sign in as another user with a forged provider response", attempts, successes)
}

func TestProviderThatIsDown(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	client := openid.New(openid.Options{Issuer: p.url + "/nowhere", ClientID: "freshet"})
	if _, _, err := client.Begin(t.Context()); !errors.Is(err, openid.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, openid.ErrUnavailable)
	}
	if !client.Trusts("a@b.c") || client.Trusts("nobody") {
		t.Error("without domains Trusts must accept every e-mail address, and only those")
	}
}
