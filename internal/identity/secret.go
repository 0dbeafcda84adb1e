package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
)

// redacted is what every printed form of a Secret says.
const redacted = "[redacted]"

// Secret holds a client secret, a token or key material. Nothing prints it:
// fmt, log/slog, encoding/json and every encoder that honours text marshalling
// show a fixed word. Only Reveal gives the value, so a leak has to be written
// on purpose and can be found by name.
type Secret struct {
	// A pointer, because fmt prints the unexported string fields of a struct
	// that itself sits in an unexported field without asking any method; of a
	// pointer it prints the address.
	value *string
}

// NewSecret wraps value.
func NewSecret(value string) Secret { return Secret{value: &value} }

// GenerateSecret makes a secret of 32 random bytes in base64url.
func GenerateSecret() Secret { return NewSecret(randomText(32)) }

// Reveal returns the value in clear.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether there is no secret in it.
func (s Secret) IsZero() bool { return s.value == nil || *s.value == "" }

// String redacts.
func (s Secret) String() string { return redacted }

// GoString redacts.
func (s Secret) GoString() string { return redacted }

// Format redacts under every verb, also those String is not asked for (%d).
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue redacts.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON redacts.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText redacts for every other encoder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// HashToken is the form in which the server remembers an API key: the SHA-256
// of the token in hex. A plain hash is enough, for the token holds a signature
// that nobody can guess.
func HashToken(token Secret) string {
	sum := sha256.Sum256([]byte(token.Reveal()))
	return hex.EncodeToString(sum[:])
}

// randomText returns n random bytes in unpadded base64url.
func randomText(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails: crypto/rand aborts the process instead
	return base64.RawURLEncoding.EncodeToString(raw)
}
