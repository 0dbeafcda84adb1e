package apikeycmd

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-jose/go-jose/v4"

	"freshet/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

// keyBits is the size of the key pairs that are made.
const keyBits = 3072

// makeKey makes a key pair, keeps the private half in a file and returns the public
// one. A file that is there already is of a key that is there already.
func makeKey(file string) (public string, err error) {
	if fileExists(file) {
		return "", hint.Add(errs.Newf(errs.Conflict, "there is a private key in %s already", file),
			"It is of a key of this name. 'freshet apikey decrypt' opens that; remove the file when the key is gone.")
	}
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", err
	}
	open, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	if err := contexts.WritePrivate(file,
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})); err != nil {
		return "", fmt.Errorf("keeping the private key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open})), nil
}

// open decrypts the token of a key.
func open(key resources.Object, privatePEM []byte) (string, error) {
	private, err := parsePrivate(privatePEM)
	if err != nil {
		return "", err
	}
	text := key.Text("status", "encryptedToken", "jwe")
	if text == "" {
		c := key.Condition("Issued")
		return "", hint.Add(errs.Newf(errs.Conflict, "key %s has no encrypted token: %s %s", key.Name(),
			c.Reason, c.Message),
			"'freshet describe ak %s' says more.", key.Name())
	}
	sealed, err := jose.ParseEncryptedCompact(text, []jose.KeyAlgorithm{jose.RSA_OAEP, jose.RSA_OAEP_256},
		[]jose.ContentEncryption{jose.A256GCM})
	if err != nil {
		return "", fmt.Errorf("the encrypted token of key %s cannot be read: %w", key.Name(), err)
	}
	token, err := sealed.Decrypt(private)
	if err != nil {
		return "", hint.Add(errs.Newf(errs.Invalid, "the private key does not open the token of key %s", key.Name()),
			"It is another key's. The one that belongs to it was made together with %s.", key.Name())
	}
	return string(token), nil
}

func parsePrivate(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errs.New(errs.Invalid, "the private key is not in PEM: it begins with -----BEGIN PRIVATE KEY-----")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errs.New(errs.Invalid,
			"the private key cannot be read: it has to be RSA, in PKCS #8 or PKCS #1, and not encrypted")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errs.New(errs.Invalid, "the private key is not an RSA key")
	}
	return key, nil
}
