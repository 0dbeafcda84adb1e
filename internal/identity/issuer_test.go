package identity_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
)

// payload decodes a token's claims without checking the signature.
func payload(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("token has %d parts", len(parts))
	}
	return decodePart(t, parts[1])
}

func decodePart(t *testing.T, part string) map[string]any {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAccessTokenClaims(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "ci", func(a *identity.Account) { a.Admin = true })
	start := time.Now().Truncate(time.Second)
	token, expires, err := w.Issuer.AccessToken(account, 90*time.Minute, "https://api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	header := decodePart(t, strings.Split(token.Reveal(), ".")[0])
	if header["alg"] != "ES256" || header["typ"] != "JWT" || header["kid"] != publishedKids(t, w.Keys)[0] ||
		len(header) != 3 {
		t.Errorf("header = %v, want ES256, JWT and the kid of the active key", header)
	}
	got := payload(t, token.Reveal())
	iat := time.Unix(int64(got["iat"].(float64)), 0)
	if iat.Before(start) || iat.After(time.Now()) {
		t.Errorf("iat = %v, want the current time", iat)
	}
	if !expires.Equal(iat.Add(90*time.Minute)) || int64(got["exp"].(float64)) != expires.Unix() {
		t.Errorf("exp = %v, returned %v, want both %v", got["exp"], expires, iat.Add(90*time.Minute))
	}
	if jti, _ := got["jti"].(string); len(jti) < 16 {
		t.Errorf("jti = %v, want at least 16 characters", got["jti"])
	}
	for _, field := range []string{"iat", "exp", "jti"} {
		delete(got, field)
	}
	want := map[string]any{
		"iss":                        identitytest.IssuerURL,
		"sub":                        account.ClientID + "@clients",
		"aud":                        "https://api.example.com",
		"https://vendor.io/username": "ci@acme.127.0.0.1:8080",
		"https://vendor.io/scope":    []any{"admin", "access"},
		"https://vendor.io/uid":      account.UID,
		"scope":                      "admin access",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("claims = %v\n   want %v", got, want)
	}
}

func TestAccessTokenLifetimes(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "ci")
	for lifetime, want := range map[time.Duration]time.Duration{
		0:                     24 * time.Hour,
		-1:                    24 * time.Hour,
		time.Minute:           time.Minute,
		1000 * 24 * time.Hour: 30 * 24 * time.Hour,
	} {
		token, expires, err := w.Issuer.AccessToken(account, lifetime, "a")
		if err != nil {
			t.Fatal(err)
		}
		c := payload(t, token.Reveal())
		if got := time.Unix(int64(c["exp"].(float64)), 0).Sub(time.Unix(int64(c["iat"].(float64)), 0)); got != want {
			t.Errorf("lifetime %v: got %v, want %v", lifetime, got, want)
		}
		if expires.Unix() != int64(c["exp"].(float64)) {
			t.Errorf("returned expiry %v, want that of the token", expires)
		}
	}
}

func TestAPIKeyClaimsAndRecord(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "ci")
	expires := time.Now().Add(time.Hour)
	tests := map[string]struct {
		req     identity.KeyRequest
		aud     string
		expires bool
	}{
		"instance": {
			identity.KeyRequest{Account: account, Name: "k", Instance: "prod", ExpiresAt: expires},
			"urn:vendor:messaging:acme:prod", true,
		},
		"organization": {
			identity.KeyRequest{Account: account, Name: "k", Metadata: map[string]string{"team": "x"}},
			"urn:vendor:messaging:acme", false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, token, err := w.Issuer.APIKey(tc.req)
			if err != nil {
				t.Fatal(err)
			}
			c := payload(t, token.Reveal())
			if c["iss"] != identitytest.IssuerURL+"/apikeys" || c["sub"] != "ci@acme.127.0.0.1:8080" ||
				c["aud"] != tc.aud || c["jti"] != key.ID {
				t.Errorf("claims = %v, want audience %s and jti %s", c, tc.aud, key.ID)
			}
			if _, ok := c["exp"]; ok != tc.expires {
				t.Errorf("exp = %v, want it to exist: %v", c["exp"], tc.expires)
			}
			if tc.expires && (int64(c["exp"].(float64)) != expires.Unix() || key.ExpiresAt.Unix() != expires.Unix()) {
				t.Errorf("exp = %v, key expires at %v, want both %v", c["exp"], key.ExpiresAt, expires)
			}
			if tc.req.Metadata != nil && !reflect.DeepEqual(c["metadata"], map[string]any{"team": "x"}) {
				t.Errorf("metadata = %v, want team x", c["metadata"])
			}
			if key.Hash != identity.HashToken(token) || key.AccountUID != account.UID ||
				key.Instance != tc.req.Instance || key.Name != "k" {
				t.Errorf("record = %+v, want the token's hash, account %s and instance %q", key, account.UID,
					tc.req.Instance)
			}
			record, err := json.Marshal(key)
			if err != nil {
				t.Fatal(err)
			}
			if signature := token.Reveal()[strings.LastIndex(token.Reveal(), ".")+1:]; strings.Contains(string(record),
				signature) {
				t.Error("key record contains the token")
			}
		})
	}
}

func TestInvalidAPIKeyRequestsNameTheInput(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, _ := w.Account("acme", "ci")
	for input, req := range map[identity.Input]identity.KeyRequest{
		identity.InputExpiresAt: {Account: account, ExpiresAt: time.Now().Add(-time.Second)},
		identity.InputMetadata:  {Account: account, Metadata: map[string]string{"x": strings.Repeat("x", 5000)}},
	} {
		_, _, err := w.Issuer.APIKey(req)
		var wrong *identity.InputError
		if !errors.As(err, &wrong) || wrong.Input != input || errs.KindOf(err) != errs.Invalid {
			t.Errorf("error = %v, want an InputError about %s of kind %v", err, input, errs.Invalid)
		}
	}
}

func TestIssuerAddresses(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	for in, want := range map[string]string{
		"https://auth.example.com":   "https://auth.example.com",
		"https://auth.example.com//": "https://auth.example.com",
		"http://127.0.0.1:8080/":     "http://127.0.0.1:8080",
	} {
		issuer, err := identity.NewIssuer(in, w.Keys)
		if err != nil || issuer.URL() != want {
			t.Errorf("NewIssuer(%q) = %v, %v; want %s", in, issuer, err, want)
		}
	}
	for _, bad := range []string{
		"", "auth.example.com", "ftp://x", "https://", "https://x?y=1", "https://u:p@x",
		"https://x#y", "http://%zz",
	} {
		if _, err := identity.NewIssuer(bad, w.Keys); err == nil {
			t.Errorf("NewIssuer(%q) succeeds, want an error", bad)
		}
	}
}

func TestCanonicalURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http://Example.com:80/":       "http://example.com",
		"https://example.com:443":      "https://example.com",
		"https://example.com:8443/a//": "https://example.com:8443/a",
		"http://127.0.0.1:8080":        "http://127.0.0.1:8080",
		"urn:vendor:messaging:a:b":     "urn:vendor:messaging:a:b",
		"":                             "",
	} {
		if got := identity.CanonicalURL(in); got != want {
			t.Errorf("CanonicalURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseInstanceAudience(t *testing.T) {
	t.Parallel()
	if org, instance, ok := identity.ParseInstanceAudience(identity.InstanceAudience("acme", "prod")); !ok ||
		org != "acme" || instance != "prod" {
		t.Errorf("parsed %q %q %v, want acme prod true", org, instance, ok)
	}
	for _, bad := range []string{
		"", "urn:vendor:messaging:", "urn:vendor:messaging:acme", "urn:vendor:messaging::prod",
		"urn:vendor:messaging:acme:", "urn:vendor:messaging:a:b:c", "http://x", identity.AnyOrganization,
	} {
		if _, _, ok := identity.ParseInstanceAudience(bad); ok {
			t.Errorf("ParseInstanceAudience accepts %q", bad)
		}
	}
}
