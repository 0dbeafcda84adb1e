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

	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

// keyBits is the size of the RSA key pairs.
const keyBits = 3072

// generateKeyPair generates a key pair, writes the private key to a file and returns the public
// one. It does not overwrite a file, which would make the token of an existing key
// unreadable.
func generateKeyPair(file string) (public string, err error) {
	if fileExists(file) {
		return "", hint.Add(errs.Newf(errs.Conflict, "file %s already has a private key", file),
			"It belongs to a key of this name. Print its token with 'freshet apikey decrypt', or remove the file if "+
				"the key was deleted.")
	}
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", err
	}
	publicDER, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	if err := contexts.WritePrivate(file,
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})); err != nil {
		return "", fmt.Errorf("storing the private key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER})), nil
}

// decryptToken decrypts the token of a key.
func decryptToken(key resources.Object, privatePEM []byte) (string, error) {
	private, err := parsePrivate(privatePEM)
	if err != nil {
		return "", err
	}
	text := key.Text("status", "encryptedToken", "jwe")
	if text == "" {
		c := key.Condition("Issued")
		return "", hint.Add(errs.Newf(errs.Conflict, "key %s has no encrypted token: %s %s", key.Name(),
			c.Reason, c.Message),
			"'freshet describe ak %s' shows its conditions.", key.Name())
	}
	sealed, err := jose.ParseEncryptedCompact(text, []jose.KeyAlgorithm{jose.RSA_OAEP, jose.RSA_OAEP_256},
		[]jose.ContentEncryption{jose.A256GCM})
	if err != nil {
		return "", fmt.Errorf("parsing the encrypted token of key %s: %w", key.Name(), err)
	}
	token, err := sealed.Decrypt(private)
	if err != nil {
		return "", hint.Add(errs.Newf(errs.Invalid, "private key does not decrypt the token of key %s", key.Name()),
			"Use the private key that was generated when %s was created.", key.Name())
	}
	return string(token), nil
}

func parsePrivate(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errs.New(errs.Invalid, "private key is not in PEM; it must begin with -----BEGIN PRIVATE KEY-----")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errs.New(errs.Invalid,
			"private key cannot be parsed; it must be RSA, in PKCS #8 or PKCS #1, and not encrypted")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errs.New(errs.Invalid, "private key is not an RSA key")
	}
	return key, nil
}
