package identity_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"freshet/internal/base/errs"
	"freshet/internal/identity"
)

// rsaKey generates one key for all tests, because that is slow.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func spki(t testing.TB, public any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("PUBLIC KEY", der)
}

func jwkOf(t testing.TB, public any) string {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKey{Key: public, KeyID: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// modulus returns a key of the given size quickly, because its modulus is no product of
// two generated primes.
func modulus(bits int) *rsa.PublicKey {
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
	return &rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537}
}

func TestEncryptedKeysDecryptWithGoJose(t *testing.T) {
	t.Parallel()
	private := rsaKey()
	forms := map[string]struct{ pem, jwk string }{
		"SPKI":    {pem: spki(t, &private.PublicKey)},
		"PKCS #1": {pem: pemOf("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&private.PublicKey))},
		"spaces":  {pem: "\n  \n  " + spki(t, &private.PublicKey) + "\n \n"},
		"CRLF":    {pem: strings.ReplaceAll(spki(t, &private.PublicKey), "\n", "\r\n")},
		"JWK":     {jwk: jwkOf(t, &private.PublicKey)},
		"JWK for enc": {jwk: strings.Replace(jwkOf(t, &private.PublicKey), "{",
			`{"use":"enc","alg":"RSA-OAEP","key_ops":["encrypt"],"ext":true,`, 1)},
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := identity.ParseEncryptionKey(form.pem, form.jwk)
			if err != nil {
				t.Fatal(err)
			}
			jwe, err := key.Encrypt(identity.NewSecret("the token"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(jwe, ".") != 4 || strings.Contains(jwe, "the token") {
				t.Errorf("got %s, want a compact JWE", jwe)
			}
			header := decodePart(t, jwe[:strings.Index(jwe, ".")])
			if header["alg"] != "RSA-OAEP" || header["enc"] != "A256GCM" {
				t.Errorf("header = %v, want RSA-OAEP and A256GCM", header)
			}
			object, err := jose.ParseEncryptedCompact(jwe, []jose.KeyAlgorithm{jose.RSA_OAEP},
				[]jose.ContentEncryption{jose.A256GCM})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := object.Decrypt(private); err != nil || string(got) != "the token" {
				t.Errorf("decrypted %q, %v; want %q", got, err, "the token")
			}
		})
	}
}

// webcrypto decrypts a JWE with the WebCrypto API of browsers, without a library.
const webcrypto = `
const fs = require('fs');
(async () => {
  const [pem, jwe] = [fs.readFileSync(process.argv[2], 'utf8'), fs.readFileSync(process.argv[3], 'utf8')];
  const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  const key = await crypto.subtle.importKey('pkcs8', der, {name: 'RSA-OAEP', hash: 'SHA-1'}, false, ['decrypt']);
  const [header, cek, iv, text, tag] = jwe.split('.');
  const raw = await crypto.subtle.decrypt({name: 'RSA-OAEP'}, key, Buffer.from(cek, 'base64url'));
  const aes = await crypto.subtle.importKey('raw', raw, 'AES-GCM', false, ['decrypt']);
  const out = await crypto.subtle.decrypt(
    {name: 'AES-GCM', iv: Buffer.from(iv, 'base64url'), additionalData: Buffer.from(header), tagLength: 128},
    aes, Buffer.concat([Buffer.from(text, 'base64url'), Buffer.from(tag, 'base64url')]));
  process.stdout.write(Buffer.from(out));
})();
`

func TestEncryptedKeysDecryptWithWebCrypto(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	dir, private := t.TempDir(), rsaKey()
	key, err := identity.ParseEncryptionKey(spki(t, &private.PublicKey), "")
	if err != nil {
		t.Fatal(err)
	}
	jwe, err := key.Encrypt(identity.NewSecret("eyJ.the.token"))
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"decrypt.js": webcrypto, "key.pem": pemOf("PRIVATE KEY", der), "jwe": jwe}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, "decrypt.js"), filepath.Join(dir, "key.pem"),
		filepath.Join(dir, "jwe"))
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "eyJ.the.token" {
		t.Errorf("WebCrypto returns %q, %v; want eyJ.the.token", out, err)
	}
}

func TestKeysMadeByOpensslAreAccepted(t *testing.T) {
	t.Parallel()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	dir := t.TempDir()
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), openssl, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("openssl %v: %v", args, err)
		}
		return string(out)
	}
	run("genrsa", "-out", "key.pem", "2048")
	for name, text := range map[string]string{
		"pubout":          run("rsa", "-in", "key.pem", "-pubout"),
		"RSAPublicKeyout": run("rsa", "-in", "key.pem", "-RSAPublicKey_out"),
	} {
		if _, err := identity.ParseEncryptionKey(text, ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnusableEncryptionKeysNameTheInput(t *testing.T) {
	t.Parallel()
	private := rsaKey()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ed, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	good := spki(t, &private.PublicKey)
	even := modulus(2048)
	even.N.Sub(even.N, big.NewInt(1))
	tests := map[string]struct {
		pem, jwk string
		input    identity.Input
		want     string
	}{
		"both":            {good, jwkOf(t, &private.PublicKey), identity.InputPEMAndJWK, "not both"},
		"text":            {"hello", "", identity.InputPEM, "PEM block"},
		"escaped breaks":  {strings.ReplaceAll(good, "\n", `\n`), "", identity.InputPEM, "line breaks"},
		"two blocks":      {good + good, "", identity.InputPEM, "one PEM block"},
		"trailing text":   {good + "x", "", identity.InputPEM, "nothing after"},
		"wrong label":     {pemOf("CERTIFICATE", []byte{1}), "", identity.InputPEM, "PUBLIC KEY"},
		"garbage SPKI":    {pemOf("PUBLIC KEY", []byte("garbage")), "", identity.InputPEM, "well-formed"},
		"garbage PKCS #1": {pemOf("RSA PUBLIC KEY", []byte("garbage")), "", identity.InputPEM, "well-formed"},
		"EC":              {spki(t, &ec.PublicKey), "", identity.InputPEM, "RSA"},
		"Ed25519":         {spki(t, ed), "", identity.InputPEM, "RSA"},
		"1024 bits":       {spki(t, modulus(1024)), "", identity.InputPEM, "at least 2048 bits, but has 1024"},
		"2047 bits":       {spki(t, modulus(2047)), "", identity.InputPEM, "2047"},
		"16384 bits":      {spki(t, modulus(16384)), "", identity.InputPEM, "at most 8192"},
		"even modulus":    {spki(t, even), "", identity.InputPEM, "modulus"},
		"exponent 1":      {spki(t, &rsa.PublicKey{N: modulus(2048).N, E: 1}), "", identity.InputPEM, "exponent"},
		"private key":     {pemOf("PRIVATE KEY", pkcs8), "", identity.InputPEM, "private key"},
		"private PKCS #1": {
			pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private)), "", identity.InputPEM,
			"private key",
		},
		"long PEM":      {strings.Repeat("x", 20000), "", identity.InputPEM, "longer"},
		"JWK text":      {"", "hello", identity.InputJWK, "JSON"},
		"JWK null":      {"", "null", identity.InputJWK, "JSON"},
		"JWK list":      {"", "[]", identity.InputJWK, "JSON"},
		"JWK empty":     {"", "{}", identity.InputJWK, "kty"},
		"JWK EC":        {"", jwkOf(t, &ec.PublicKey), identity.InputJWK, "RSA"},
		"JWK symmetric": {"", `{"kty":"oct","k":"AAAA"}`, identity.InputJWK, "private"},
		"JWK private":   {"", jwkOf(t, private), identity.InputJWK, "private key"},
		"JWK no n":      {"", `{"kty":"RSA","e":"AQAB"}`, identity.InputJWK, "n and e"},
		"JWK bad n":     {"", `{"kty":"RSA","n":"!!","e":"AQAB"}`, identity.InputJWK, "base64url"},
		"JWK zero":      {"", `{"kty":"RSA","n":"AA","e":"AQAB"}`, identity.InputJWK, "bits"},
		"JWK big exponent": {
			"", strings.Replace(jwkOf(t, &private.PublicKey), "AQAB", strings.Repeat("_", 40), 1),
			identity.InputJWK, "",
		},
		"JWK for signing": {
			"", strings.Replace(jwkOf(t, &private.PublicKey), "{", `{"use":"sig",`, 1),
			identity.InputJWK, "enc",
		},
		"JWK other alg": {
			"", strings.Replace(jwkOf(t, &private.PublicKey), "{", `{"alg":"RSA-OAEP-256",`, 1),
			identity.InputJWK, "RSA-OAEP",
		},
		"JWK 1024 bits":     {"", jwkOf(t, modulus(1024)), identity.InputJWK, "at least 2048"},
		"JWK 16384 bits":    {"", jwkOf(t, modulus(16384)), identity.InputJWK, "at most 8192"},
		"JWK n is a number": {"", `{"kty":"RSA","n":5,"e":"AQAB"}`, identity.InputJWK, "n and e"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := identity.ParseEncryptionKey(tc.pem, tc.jwk)
			var wrong *identity.InputError
			if !errors.As(err, &wrong) || errs.KindOf(err) != errs.Invalid {
				t.Fatalf("error = %v, want an InputError of kind %v", err, errs.Invalid)
			}
			if wrong.Input != tc.input || !strings.HasPrefix(err.Error(), string(tc.input)+": ") ||
				!strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %q, want input %s and %q", err, tc.input, tc.want)
			}
			if d := private.D.String(); strings.Contains(err.Error(), d[:20]) || strings.Contains(err.Error(), "MIIE") {
				t.Errorf("error quotes a private key: %q", err)
			}
		})
	}
}

func TestNoEncryptionKeyIsNoError(t *testing.T) {
	t.Parallel()
	if key, err := identity.ParseEncryptionKey("", ""); key != nil || err != nil {
		t.Errorf("ParseEncryptionKey = %v, %v; want nil, nil", key, err)
	}
}

func FuzzParseEncryptionKey(f *testing.F) {
	private := rsaKey()
	f.Add(spki(f, &private.PublicKey), "")
	f.Add("", jwkOf(f, &private.PublicKey))
	f.Add(pemOf("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&private.PublicKey)), "")
	f.Add("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n", "")
	f.Add("", `{"kty":"RSA","n":"AA","e":"AA"}`)
	f.Add("", `{"kty":"RSA","n":"`+strings.Repeat("_", 342)+`","e":"Aw","x5c":["AA"]}`)
	f.Fuzz(func(t *testing.T, pemText, jwkText string) {
		key, err := identity.ParseEncryptionKey(pemText, jwkText)
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				t.Fatalf("kind of %v is %v, want %v", err, errs.KindOf(err), errs.Invalid)
			}
			return
		}
		if key == nil {
			if pemText != "" || jwkText != "" {
				t.Fatal("ParseEncryptionKey returns no key and no error for a non-empty input")
			}
			return
		}
		if _, err := key.Encrypt(identity.NewSecret("token")); err != nil {
			t.Fatalf("Encrypt fails for an accepted key: %v", err)
		}
	})
}
