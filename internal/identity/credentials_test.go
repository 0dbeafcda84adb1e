package identity_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
)

func TestCredentialsFileFields(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	c := w.Issuer.NewCredentials("acme", "ci")
	var file map[string]string
	if err := json.Unmarshal(c.File(), &file); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"type":          "vendor_service_account",
		"client_id":     c.ClientID,
		"client_secret": c.ClientSecret.Reveal(),
		"client_email":  "ci@acme.127.0.0.1:8080",
		"issuer_url":    "http://127.0.0.1:8080",
	}
	for field, value := range want {
		if file[field] != value {
			t.Errorf("%s = %q, want %q", field, file[field], value)
		}
	}
	if len(file) != len(want) {
		t.Errorf("fields = %v, want %d", file, len(want))
	}
	raw, err := base64.RawURLEncoding.DecodeString(file["client_secret"])
	if err != nil || len(raw) != 32 {
		t.Errorf("client secret is %d bytes, %v; want 32", len(raw), err)
	}
	back, err := identity.ParseCredentials(c.File())
	if err != nil {
		t.Fatal(err)
	}
	if back.ClientID != c.ClientID || back.ClientSecret.Reveal() != c.ClientSecret.Reveal() ||
		back.ClientEmail != c.ClientEmail || back.IssuerURL != c.IssuerURL {
		t.Errorf("parsed %+v, want %+v", back, c)
	}
}

func TestInvalidCredentialsFilesAreRejectedWithoutQuotingThem(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-s3cr3t"
	good := func(change string) string {
		return `{"type":"vendor_service_account","client_id":"id","client_secret":"` + secret + `"` + change + `}`
	}
	tests := map[string]struct{ text, want string }{
		"not JSON":   {secret, "JSON"},
		"a list":     {`["` + secret + `"]`, "JSON"},
		"number":     {`{"type":"vendor_service_account","client_secret":` + "12345}", "JSON"},
		"other type": {`{"type":"` + secret + `"}`, "type"},
		"no id":      {`{"type":"vendor_service_account","client_secret":"` + secret + `"}`, "client_id"},
		"no secret":  {`{"type":"vendor_service_account","client_id":"id"}`, "client_secret"},
		"line in secret": {
			`{"type":"vendor_service_account","client_id":"id","client_secret":"` + secret + `\n"}`,
			"client_secret",
		},
		"bad issuer":     {good(`,"issuer_url":"ftp://` + secret + `"`), "issuer_url"},
		"user in issuer": {good(`,"issuer_url":"https://u:` + secret + `@host"`), "issuer_url"},
		"too large":      {good(`,"x":"` + strings.Repeat("x", identity.MaxCredentialsFile) + `"`), "larger"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := identity.ParseCredentials([]byte(tc.text))
			if !errors.Is(err, identity.ErrInvalidCredentials) || errs.KindOf(err) != errs.Invalid {
				t.Fatalf("error = %v, want %v", err, identity.ErrInvalidCredentials)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q does not contain %q", err, tc.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("error %q quotes the file", err)
			}
		})
	}
	for name, text := range map[string]string{
		"plain": good(""), "extra field": good(`,"extra":"x"`),
		"byte order mark": "\ufeff" + good(""),
	} {
		if _, err := identity.ParseCredentials([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAuthenticateAcceptsOnlyMatchingCredentials(t *testing.T) {
	t.Parallel()
	w := identitytest.New(t)
	account, c := w.Account("acme", "ci")
	_, other := w.Account("acme", "other")
	got, err := identity.Authenticate(w.Directory, w.Sealer, c.ClientID, c.ClientSecret)
	if err != nil || got.Name != account.Name {
		t.Fatalf("Authenticate = %v, %v; want account %s", got, err, account.Name)
	}
	tests := map[string]struct {
		id     string
		secret identity.Secret
	}{
		"unknown id":                {"nobody", c.ClientSecret},
		"no id":                     {"", c.ClientSecret},
		"no secret":                 {c.ClientID, identity.Secret{}},
		"wrong secret":              {c.ClientID, identity.GenerateSecret()},
		"secret of another account": {c.ClientID, other.ClientSecret},
		"the hash as secret":        {c.ClientID, identity.NewSecret(account.SecretHash)},
	}
	for name, tc := range tests {
		if _, err := identity.Authenticate(w.Directory, w.Sealer, tc.id, tc.secret); !errors.Is(err,
			identity.ErrInvalidClient) {
			t.Errorf("%s: error = %v, want %v", name, err, identity.ErrInvalidClient)
		}
	}
	w.Directory.DeleteAccount("acme", "ci", account.UID)
	if _, err := identity.Authenticate(w.Directory, w.Sealer, c.ClientID, c.ClientSecret); !errors.Is(err,
		identity.ErrInvalidClient) {
		t.Errorf("deleted account: error = %v, want %v", err, identity.ErrInvalidClient)
	}
}

func FuzzParseCredentials(f *testing.F) {
	f.Add([]byte(`{"type":"vendor_service_account","client_id":"id","client_secret":"s",` +
		`"client_email":"a@b","issuer_url":"https://x"}`))
	f.Add([]byte(`{"type":"vendor_service_account"}`))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := identity.ParseCredentials(data)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				t.Fatalf("kind of %v is %v, want %v", err, errs.KindOf(err), errs.Invalid)
			}
			return
		}
		back, err := identity.ParseCredentials(c.File())
		if err != nil {
			t.Fatalf("ParseCredentials rejects the result of File: %v", err)
		}
		if back.ClientID != c.ClientID || back.ClientSecret.Reveal() != c.ClientSecret.Reveal() {
			t.Fatalf("round trip changed %+v to %+v", c, back)
		}
	})
}
