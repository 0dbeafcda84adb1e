package identity_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
)

// forge creates tokens with the public keys, which an attacker has, and with the private
// key, which an attacker does not have, for tests of the checks after the signature.
type forge struct {
	*identitytest.World
	store   *identitytest.Store
	private *ecdsa.PrivateKey
	kid     string
	account *identity.Account
}

func newForge(t testing.TB) *forge {
	t.Helper()
	f := &forge{World: identitytest.New(t), store: &identitytest.Store{}}
	keys, err := identity.OpenKeyring(context.Background(), f.store, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Keys = keys
	if f.Issuer, err = identity.NewIssuer(identitytest.IssuerURL, keys); err != nil {
		t.Fatal(err)
	}
	f.Verifier = identity.NewVerifier(f.Issuer, f.Directory, identity.VerifierOptions{})
	f.account, _ = f.Account("acme", "ci")
	data, _, _ := f.store.Load(context.Background())
	var state struct {
		Active string
		Keys   []struct {
			Kid     string
			Private []byte
		}
	}
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	for _, k := range state.Keys {
		if k.Kid == state.Active {
			key, err := x509.ParsePKCS8PrivateKey(k.Private)
			if err != nil {
				t.Fatal(err)
			}
			f.private, f.kid = key.(*ecdsa.PrivateKey), k.Kid
		}
	}
	return f
}

func (f *forge) claims() map[string]any {
	now := time.Now().Unix()
	return map[string]any{
		"iss": identitytest.IssuerURL, "sub": f.account.ClientID + "@clients", "aud": api,
		"iat": now, "exp": now + 3600, "jti": "x", "https://vendor.io/uid": f.account.UID,
	}
}

// token assembles a compact JWS without a library, so that it can be invalid.
func token(header map[string]any, claims any, sign func([]byte) []byte) string {
	encode := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	input := encode(header) + "." + encode(claims)
	return input + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(input)))
}

func es256(key *ecdsa.PrivateKey) func([]byte) []byte {
	return func(input []byte) []byte {
		sum := sha256.Sum256(input)
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			panic(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
}

func hs256(secret []byte) func([]byte) []byte {
	return func(input []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(input)
		return mac.Sum(nil)
	}
}

func fixed(b []byte) func([]byte) []byte { return func([]byte) []byte { return b } }

func with(m map[string]any, name string, value any) map[string]any {
	out := maps.Clone(m)
	if value == nil {
		delete(out, name)
	} else {
		out[name] = value
	}
	return out
}

func TestForgedSignaturesAreRejected(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&f.private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]any{"alg": "ES256", "typ": "JWT", "kid": f.kid}
	if _, err := f.Verifier.Authenticate(t.Context(), token(good, f.claims(), es256(f.private)), api); err != nil {
		t.Fatalf("valid token is rejected, so the other cases prove nothing: %v", err)
	}
	valid := token(good, f.claims(), es256(f.private))
	parts := strings.Split(valid, ".")
	jwk := json.RawMessage(jwkOf(t, &own.PublicKey))
	n := elliptic.P256().Params().N
	tests := map[string]string{
		"none":                  token(with(good, "alg", "none"), f.claims(), fixed(nil)),
		"None with signature":   token(with(good, "alg", "None"), f.claims(), es256(f.private)),
		"no alg":                token(with(good, "alg", nil), f.claims(), es256(f.private)),
		"HS256 with public key": token(with(good, "alg", "HS256"), f.claims(), hs256(public)),
		"HS256 with public PEM": token(with(good, "alg", "HS256"), f.claims(),
			hs256([]byte(pemOf("PUBLIC KEY", public)))),
		"HS256 with kid":       token(with(good, "alg", "HS256"), f.claims(), hs256([]byte(f.kid))),
		"ES384 label":          token(with(good, "alg", "ES384"), f.claims(), es256(f.private)),
		"own key, our kid":     token(good, f.claims(), es256(own)),
		"own key, own kid":     token(with(good, "kid", "mine"), f.claims(), es256(own)),
		"own key, no kid":      token(with(good, "kid", nil), f.claims(), es256(own)),
		"no kid":               token(with(good, "kid", nil), f.claims(), es256(f.private)),
		"kid is a path":        token(with(good, "kid", "../../../dev/null"), f.claims(), es256(own)),
		"kid is SQL":           token(with(good, "kid", "' OR 1=1 --"), f.claims(), es256(own)),
		"kid is a number":      token(with(good, "kid", 7), f.claims(), es256(own)),
		"kid is a list":        token(with(good, "kid", []string{f.kid}), f.claims(), es256(own)),
		"embedded key":         token(with(with(good, "jwk", jwk), "kid", nil), f.claims(), es256(own)),
		"embedded key and kid": token(with(good, "jwk", jwk), f.claims(), es256(own)),
		"key by address":       token(with(good, "jku", "http://127.0.0.1:1/jwks"), f.claims(), es256(own)),
		"critical extension":   token(with(good, "crit", []string{"exp"}), f.claims(), es256(f.private)),
		"unencoded payload": token(with(with(good, "b64", false), "crit", []string{"b64"}), f.claims(),
			es256(f.private)),
		"zero signature": token(good, f.claims(), fixed(make([]byte, 64))),
		"r = s = n": token(good, f.claims(),
			fixed(append(n.FillBytes(make([]byte, 32)), n.FillBytes(make([]byte, 32))...))),
		"short signature": token(good, f.claims(), fixed(big.NewInt(1).Bytes())),
		"no signature":    parts[0] + "." + parts[1] + ".",
		"two parts":       parts[0] + "." + parts[1],
		"four parts":      valid + ".x",
		"changed payload": parts[0] + "." + parts[1][:len(parts[1])-4] + "AAAA." + parts[2],
		"signature of another token": parts[0] + "." + strings.Split(f.Token(f.account, "other"), ".")[1] + "." +
			parts[2],
		"padded": valid + "=",
		"space":  " " + valid,
		"line":   valid + "\n",
		"JSON form": `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` +
			parts[2] + `"}`,
		"too long":   parts[0] + "." + strings.Repeat("A", 20000) + "." + parts[2],
		"only dots":  "..",
		"not base64": "!.!.!",
		"header is not an object": base64.RawURLEncoding.EncodeToString([]byte(`"x"`)) + "." + parts[1] + "." +
			parts[2],
		"binary":        "\x00\xff\x00.\x01.\x02",
		"prefix Bearer": "Bearer " + valid,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				verify(t, f.World, text, identity.ErrInvalidToken, api)
			}
		})
	}
	verify(t, f.World, "", identity.ErrNoToken, api)
}

func TestClaimsOfValidSignaturesAreChecked(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	key, keyToken := f.Key(f.account, "prod")
	header := map[string]any{"alg": "ES256", "kid": f.kid}
	now := time.Now().Unix()
	keyClaims := payload(t, keyToken)
	tests := map[string]struct {
		claims any
		want   error
	}{
		"expired":              {with(f.claims(), "exp", now-1), identity.ErrTokenExpired},
		"no expiry":            {with(f.claims(), "exp", nil), identity.ErrInvalidToken},
		"from a clock ahead":   {with(f.claims(), "iat", now+600), nil},
		"not before":           {with(f.claims(), "nbf", now+120), identity.ErrTokenTooEarly},
		"another issuer":       {with(f.claims(), "iss", "https://evil"), identity.ErrInvalidToken},
		"issuer with a slash":  {with(f.claims(), "iss", identitytest.IssuerURL+"/"), identity.ErrInvalidToken},
		"no issuer":            {with(f.claims(), "iss", nil), identity.ErrInvalidToken},
		"no subject":           {with(f.claims(), "sub", nil), identity.ErrInvalidToken},
		"user subject":         {with(f.claims(), "sub", f.account.ClientID), identity.ErrInvalidToken},
		"unknown client":       {with(f.claims(), "sub", "nobody@clients"), identity.ErrAccountGone},
		"another uid":          {with(f.claims(), "https://vendor.io/uid", "other"), identity.ErrAccountGone},
		"no uid":               {with(f.claims(), "https://vendor.io/uid", nil), identity.ErrAccountGone},
		"no audience":          {with(f.claims(), "aud", nil), identity.ErrWrongAudience},
		"audience list":        {with(f.claims(), "aud", []string{"x", api}), nil},
		"audience is a number": {with(f.claims(), "aud", 7), identity.ErrInvalidToken},
		"expiry is text":       {with(f.claims(), "exp", "never"), identity.ErrInvalidToken},
		"claims are a list":    {[]string{"x"}, identity.ErrInvalidToken},
		"access token as key": {
			with(f.claims(), "iss", identitytest.IssuerURL+"/apikeys"),
			identity.ErrKeyUnknown,
		},
		"key with another token":    {with(keyClaims, "iat", now-5), identity.ErrInvalidToken},
		"key claims, access issuer": {with(keyClaims, "iss", identitytest.IssuerURL), identity.ErrInvalidToken},
		"key claims, unknown id":    {with(keyClaims, "jti", "other"), identity.ErrKeyUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verify(t, f.World, token(header, tc.claims, es256(f.private)), tc.want, api, plane)
		})
	}
	if key.Hash == "" {
		t.Error("key has no hash")
	}
}

// FuzzVerify passes arbitrary text to the verifier: it must not panic and must not return a
// principal.
func FuzzVerify(f *testing.F) {
	world := newForge(f)
	valid := world.Token(world.account, api)
	parts := strings.Split(valid, ".")
	f.Add(valid[:len(valid)-1])
	f.Add(parts[0] + ".." + parts[2])
	f.Add("a.b.c")
	f.Add("")
	f.Add(strings.Repeat(".", 100))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := world.Verifier.Authenticate(context.Background(), text, api)
		switch {
		case err == nil && text != valid:
			t.Fatalf("accepted %q as %v", text, p)
		case err != nil && errs.KindOf(err) != errs.Unauthenticated:
			t.Fatalf("kind of %v is %v, want %v", err, errs.KindOf(err), errs.Unauthenticated)
		case err != nil && len(text) > 20 && strings.Contains(err.Error(), text):
			t.Fatalf("error quotes the token: %v", err)
		}
	})
}

// FuzzVerifyClaims signs arbitrary claims with the real key, to test the checks after the
// signature.
func FuzzVerifyClaims(f *testing.F) {
	world := newForge(f)
	header := map[string]any{"alg": "ES256", "kid": world.kid}
	good, err := json.Marshal(world.claims())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"iss":"http://127.0.0.1:8080/apikeys","jti":"x","aud":[],"exp":-1}`))
	f.Add([]byte(`{"exp":9223372036854775807,"iat":-9223372036854775808}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, claims []byte) {
		if !json.Valid(claims) {
			return
		}
		p, err := world.Verifier.Authenticate(context.Background(),
			token(header, json.RawMessage(claims), es256(world.private)), api)
		if err == nil && p.UID != world.account.UID {
			t.Fatalf("claims %s: got principal %+v, want uid %s", claims, p, world.account.UID)
		}
		if err != nil && errs.KindOf(err) != errs.Unauthenticated {
			t.Fatalf("kind of %v is %v, want %v", err, errs.KindOf(err), errs.Unauthenticated)
		}
	})
}

// TestNoTypePrintsASecret checks that no print, log or JSON form of an exported type
// contains a secret.
func TestNoTypePrintsASecret(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	credentials := f.Issuer.NewCredentials("acme", "x")
	key, keyToken := f.Key(f.account, "prod")
	access, _, err := f.Issuer.AccessToken(f.account, time.Hour, api)
	if err != nil {
		t.Fatal(err)
	}
	principal, err := f.Verifier.Authenticate(t.Context(), keyToken, plane)
	if err != nil {
		t.Fatal(err)
	}
	encryption, err := identity.ParseEncryptionKey(spki(t, &rsaKey().PublicKey), "")
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(f.private)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{
		"client secret": credentials.ClientSecret.Reveal(),
		"access token":  access.Reveal(),
		"key token":     keyToken,
		"signature":     keyToken[strings.LastIndex(keyToken, ".")+1:],
		"private key":   base64.StdEncoding.EncodeToString(private)[40:80],
	}
	type hidden struct{ inside identity.Secret } // fmt cannot call methods of unexported fields
	values := map[string]any{
		"secret": access, "secret pointer": &access, "hidden": hidden{access}, "hidden pointer": &hidden{access},
		"list": []identity.Secret{access}, "map": map[string]identity.Secret{"x": access},
		"credentials": credentials, "credentials pointer": &credentials,
		"account": *f.account, "key": key, "principal": principal, "principal value": *principal,
		"sealer": f.Sealer, "keyring": f.Keys, "issuer": f.Issuer, "verifier": f.Verifier, "directory": f.Directory,
		"encryption key": encryption,
	}
	for name, value := range values {
		for form, printed := range printedForms(value) {
			for what, secret := range secrets {
				if strings.Contains(printed, secret) {
					t.Errorf("%s in form %s prints the %s", name, form, what)
				}
			}
		}
	}
	// Proves that the test can fail: it detects a plain struct with the same content.
	leaky := struct{ Token string }{access.Reveal()}
	caught := false
	for _, printed := range printedForms(leaky) {
		caught = caught || strings.Contains(printed, secrets["access token"])
	}
	if !caught {
		t.Error("printedForms does not print the token of a plain struct")
	}
}

func printedForms(v any) map[string]string {
	out := make(map[string]string)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out[verb] = fmt.Sprintf(verb, v)
	}
	if data, err := json.Marshal(v); err == nil {
		out["json"] = string(data)
	}
	var text, structured bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("x", slog.Any("value", v))
	slog.New(slog.NewJSONHandler(&structured, nil)).Info("x", slog.Any("value", v))
	out["slog text"], out["slog json"] = text.String(), structured.String()
	out["error"] = errors.Join(errors.New("x"), errs.Newf(errs.Internal, "with %v", v)).Error()
	return out
}
