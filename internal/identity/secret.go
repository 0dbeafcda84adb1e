package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
)

// redacted is every printed form of a Secret.
const redacted = "[redacted]"

// Secret contains a client secret, a token or key material. fmt, log/slog, encoding/json
// and every encoder that supports text marshaling print a fixed word instead. Only Reveal
// returns the value, so a search for Reveal finds every use.
type Secret struct {
	// value is a pointer, because for a Secret in an unexported field fmt prints the
	// fields without calling methods. Of a pointer it prints only the address.
	value *string
}

// NewSecret wraps value.
func NewSecret(value string) Secret { return Secret{value: &value} }

// GenerateSecret returns a secret of 32 random bytes in base64url.
func GenerateSecret() Secret { return NewSecret(randomText(32)) }

// Reveal returns the value in clear text.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.value == nil || *s.value == "" }

// String redacts.
func (s Secret) String() string { return redacted }

// GoString redacts.
func (s Secret) GoString() string { return redacted }

// Format redacts for every verb, including those that do not call String (%d).
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue redacts.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON redacts.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText redacts for every other encoder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// HashToken returns the form in which the server stores an API key: the SHA-256 of the
// token in hex. A plain hash is enough, because the token contains a signature that cannot
// be guessed.
func HashToken(token Secret) string {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return hex.EncodeToString(sum[:])
}

// randomText returns n random bytes in unpadded base64url.
func randomText(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never returns an error; crypto/rand aborts the process instead
	return base64.RawURLEncoding.EncodeToString(raw)
}
