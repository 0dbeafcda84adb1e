package identity

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// Sizes of RSA keys. docs/spec/resources.md#api-key sets the minimum. The maximum bounds
// the processor time of one request.
const (
	minRSABits       = 2048
	maxRSABits       = 8192
	maxEncryptionKey = 16 << 10
)

// EncryptionKey is the public key of a client's RSA key pair. The server encrypts a new
// API key with it before it returns the key.
type EncryptionKey struct {
	public *rsa.PublicKey
	keyID  string
}

// ParseEncryptionKey reads a PEM or a JWK, not both. It returns nil if both are empty.
// Errors are InputErrors and never quote the key, because users paste private keys by
// mistake.
func ParseEncryptionKey(pemText, jwkText string) (*EncryptionKey, error) {
	switch {
	case pemText != "" && jwkText != "":
		return nil, &InputError{InputPEMAndJWK, "set pem or jwk, not both"}
	case pemText != "":
		return parsePEM(pemText)
	case jwkText != "":
		return parseJWK(jwkText)
	}
	return nil, nil
}

func parsePEM(text string) (*EncryptionKey, error) {
	if len(text) > maxEncryptionKey {
		return nil, &InputError{InputPEM, fmt.Sprintf("must not be longer than %d bytes", maxEncryptionKey)}
	}
	block, rest := pem.Decode(bytes.TrimSpace([]byte(text)))
	if block == nil {
		detail := "must be a PEM block that starts with -----BEGIN PUBLIC KEY-----"
		if strings.Contains(text, `\n`) {
			detail += `; it contains the characters \n instead of line breaks`
		}
		return nil, &InputError{InputPEM, detail}
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, &InputError{InputPEM, "must contain one PEM block and nothing after it"}
	}
	public, detail := decodePEM(block)
	if detail != "" {
		return nil, &InputError{InputPEM, detail}
	}
	if detail := checkRSA(public); detail != "" {
		return nil, &InputError{InputPEM, detail}
	}
	return &EncryptionKey{public: public}, nil
}

func decodePEM(block *pem.Block) (*rsa.PublicKey, string) {
	switch {
	case block.Type == "RSA PUBLIC KEY": // PKCS #1
		public, err := x509.ParsePKCS1PublicKey(block.Bytes)
		if err != nil {
			return nil, "is not a well-formed RSA public key (PKCS #1)"
		}
		return public, ""
	case block.Type == "PUBLIC KEY": // SPKI
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, "is not a well-formed public key (SubjectPublicKeyInfo)"
		}
		public, ok := parsed.(*rsa.PublicKey)
		if !ok {
			return nil, "must be an RSA key, but it is a key for " + keyKind(parsed)
		}
		return public, ""
	case strings.Contains(block.Type, "PRIVATE KEY"):
		return nil, "is a private key; send the public key of another key pair, because this one is compromised"
	}
	return nil, "must be a block of type PUBLIC KEY or RSA PUBLIC KEY"
}

func keyKind(key any) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", key), "*")
	kind, _, _ = strings.Cut(kind, ".")
	return strings.ToUpper(kind)
}

// checkRSA returns the problem of a key, or "".
func checkRSA(public *rsa.PublicKey) string {
	switch bits := public.N.BitLen(); {
	case bits < minRSABits:
		return fmt.Sprintf("must be an RSA key of at least %d bits, but has %d", minRSABits, bits)
	case bits > maxRSABits:
		return fmt.Sprintf("must be an RSA key of at most %d bits, but has %d", maxRSABits, bits)
	case public.N.Bit(0) == 0:
		return "has an even modulus"
	case public.E < 3 || public.E%2 == 0:
		return "has an unusable public exponent"
	}
	return ""
}

// parseJWK reads a JSON Web Key. It reads the members itself, so that the error names the
// wrong one, a private key is not decoded, and certificates (x5c) are ignored.
func parseJWK(text string) (*EncryptionKey, error) {
	if len(text) > maxEncryptionKey {
		return nil, &InputError{InputJWK, fmt.Sprintf("must not be longer than %d bytes", maxEncryptionKey)}
	}
	var key map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &key); err != nil || key == nil {
		return nil, &InputError{InputJWK, "must be a JSON Web Key, a JSON object"}
	}
	if detail := checkJWKMembers(key); detail != "" {
		return nil, &InputError{InputJWK, detail}
	}
	n, nOK := jwkNumber(key, "n")
	e, eOK := jwkNumber(key, "e")
	switch {
	case !nOK || !eOK:
		return nil, &InputError{InputJWK, "must have n and e in base64url without padding"}
	case e.BitLen() > 31:
		return nil, &InputError{InputJWK, "has an unusable public exponent"}
	}
	public := &rsa.PublicKey{N: n, E: int(e.Int64())}
	if detail := checkRSA(public); detail != "" {
		return nil, &InputError{InputJWK, detail}
	}
	return &EncryptionKey{public: public, keyID: jwkText(key, "kid")}, nil
}

// jwkText returns a string member, or "" if it is missing or not a string.
func jwkText(members map[string]json.RawMessage, name string) string {
	var s string
	_ = json.Unmarshal(members[name], &s)
	return s
}

func jwkNumber(members map[string]json.RawMessage, name string) (*big.Int, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(jwkText(members, name))
	return new(big.Int).SetBytes(raw), err == nil
}

func checkJWKMembers(members map[string]json.RawMessage) string {
	for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
		if _, ok := members[private]; ok {
			return "contains a private key; send only kty, n and e of another key pair, because this one is compromised"
		}
	}
	use, alg := jwkText(members, "use"), jwkText(members, "alg")
	switch kty := jwkText(members, "kty"); {
	case kty == "":
		return `has no member kty; it must be "RSA"`
	case kty != "RSA":
		return `must have kty "RSA"`
	case jwkText(members, "n") == "" || jwkText(members, "e") == "":
		return "must have the members n and e"
	case use != "" && use != "enc":
		return `must have use "enc", if any`
	case alg != "" && alg != string(jose.RSA_OAEP):
		return `must have alg "RSA-OAEP", if any`
	}
	return ""
}

// Encrypt returns an API key as compact JWE, RSA-OAEP with A256GCM
// (docs/spec/resources.md#r5).
func (k *EncryptionKey) Encrypt(token Secret) (string, error) {
	encrypter, err := jose.NewEncrypter(jose.A256GCM,
		jose.Recipient{Algorithm: jose.RSA_OAEP, Key: k.public, KeyID: k.keyID}, nil)
	if err != nil {
		return "", fmt.Errorf("encrypting the API key: %w", err)
	}
	object, err := encrypter.Encrypt([]byte(token.Reveal()))
	if err != nil {
		return "", fmt.Errorf("encrypting the API key: %w", err)
	}
	jwe, err := object.CompactSerialize()
	if err != nil {
		return "", fmt.Errorf("encrypting the API key: %w", err)
	}
	return jwe, nil
}
