package identity

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const keyStateVersion = 1

// keyState is the stored state, encoded as JSON. It contains private keys in clear text:
// SealedStore encrypts it, and String redacts it.
type keyState struct {
	Version   int         `json:"version"`
	Active    string      `json:"active"`
	Next      string      `json:"next"`
	RotatedAt time.Time   `json:"rotatedAt"`
	Keys      []storedKey `json:"keys"`
}

type storedKey struct {
	ID      string    `json:"kid"`
	Created time.Time `json:"created"`
	Retired time.Time `json:"retired,omitzero"`
	Public  []byte    `json:"public"`            // SPKI
	Private []byte    `json:"private,omitempty"` // PKCS #8; nil after retirement
}

// String and GoString keep private keys out of logs.
func (s keyState) String() string   { return redacted }
func (s keyState) GoString() string { return redacted }

// createFirstKeys creates the first two keys.
func (s *keyState) createFirstKeys(now time.Time) error {
	for _, id := range []*string{&s.Active, &s.Next} {
		key, err := newStoredKey(now)
		if err != nil {
			return err
		}
		s.Keys, *id = append(s.Keys, key), key.ID
	}
	s.RotatedAt = now.UTC()
	return nil
}

func (s *keyState) rotate(now time.Time) error {
	if len(s.Keys) >= maxSigningKeys {
		return ErrTooManySigningKeys
	}
	key, err := newStoredKey(now)
	if err != nil {
		return err
	}
	if retired := s.find(s.Active); retired != nil {
		retired.Private, retired.Retired = nil, now.UTC()
	}
	s.Keys = append(s.Keys, key)
	s.Active, s.Next, s.RotatedAt = s.Next, key.ID, now.UTC()
	return nil
}

// withdraw deletes a key. It replaces the active or the next key with another one first.
func (s *keyState) withdraw(kid string, now time.Time) error {
	if s.find(kid) == nil {
		return fmt.Errorf("signing key %q: %w", kid, ErrSigningKeyUnknown)
	}
	if kid == s.Active {
		if err := s.rotate(now); err != nil {
			return err
		}
	}
	if kid == s.Next {
		key, err := newStoredKey(now)
		if err != nil {
			return err
		}
		s.Keys, s.Next = append(s.Keys, key), key.ID
	}
	s.Keys = slices.DeleteFunc(s.Keys, func(k storedKey) bool { return k.ID == kid })
	return nil
}

func (s *keyState) find(kid string) *storedKey {
	if i := slices.IndexFunc(s.Keys, func(k storedKey) bool { return k.ID == kid }); i >= 0 {
		return &s.Keys[i]
	}
	return nil
}

func (s *keyState) clone() keyState {
	out := *s
	out.Keys = slices.Clone(s.Keys)
	return out
}

// ordered returns the active key, the next key, then the retired ones, newest first.
func (s *keyState) ordered() []storedKey {
	keys := slices.Clone(s.Keys)
	first := []string{s.Next, s.Active}
	slices.SortStableFunc(keys, func(a, b storedKey) int {
		return cmp.Or(slices.Index(first, b.ID)-slices.Index(first, a.ID), b.Created.Compare(a.Created))
	})
	return keys
}

func (s *keyState) encode() []byte {
	data, err := json.Marshal((*keyStateJSON)(s))
	if err != nil {
		panic("identity: encoding signing keys: " + err.Error()) // cannot fail for times, strings and bytes
	}
	return data
}

// keyStateJSON is keyState without its redacting methods.
type keyStateJSON keyState

// newStoredKey creates a key whose id does not begin with a dash, because commands would read such
// an id as a flag.
func newStoredKey(now time.Time) (storedKey, error) {
	for {
		key, err := generateStoredKey(now)
		if err != nil || !strings.HasPrefix(key.ID, "-") {
			return key, err
		}
	}
}

func generateStoredKey(now time.Time) (storedKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return storedKey{}, fmt.Errorf("creating a signing key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return storedKey{}, fmt.Errorf("creating a signing key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return storedKey{}, fmt.Errorf("creating a signing key: %w", err)
	}
	// The kid is a fingerprint of the public key, so it is unique.
	sum := sha256.Sum256(public)
	return storedKey{
		ID:      base64.RawURLEncoding.EncodeToString(sum[:15]),
		Created: now.UTC(),
		Public:  public,
		Private: der,
	}, nil
}

// parseKeyset decodes the stored state. Its errors never quote the data.
func parseKeyset(data []byte, revision int64) (*keyset, error) {
	var state keyStateJSON
	if err := json.Unmarshal(data, &state); err != nil {
		return nil, errors.New("stored signing keys are not valid JSON")
	}
	if state.Version != keyStateVersion {
		return nil, fmt.Errorf("stored signing keys have format version %d, but this program reads version %d",
			state.Version, keyStateVersion)
	}
	set := &keyset{revision: revision, state: keyState(state), verify: make(map[string]*ecdsa.PublicKey)}
	var public jose.JSONWebKeySet
	for _, key := range set.state.ordered() {
		parsed, err := x509.ParsePKIXPublicKey(key.Public)
		if err != nil {
			return nil, fmt.Errorf("signing key %s has a damaged public key", key.ID)
		}
		ec, ok := parsed.(*ecdsa.PublicKey)
		if !ok || ec.Curve != elliptic.P256() {
			return nil, fmt.Errorf("signing key %s is not a P-256 key", key.ID)
		}
		set.verify[key.ID] = ec
		public.Keys = append(public.Keys,
			jose.JSONWebKey{Key: ec, KeyID: key.ID, Algorithm: string(jose.ES256), Use: "sig"})
		if key.ID == state.Active {
			if set.signer, err = newSigner(key); err != nil {
				return nil, err
			}
		}
	}
	if set.signer == nil {
		return nil, errors.New("stored signing keys do not contain the active key")
	}
	var err error
	if set.jwks, err = json.Marshal(public); err != nil {
		return nil, fmt.Errorf("encoding the JWKS: %w", err)
	}
	return set, nil
}

func newSigner(key storedKey) (jose.Signer, error) {
	private, err := x509.ParsePKCS8PrivateKey(key.Private)
	if err != nil {
		return nil, fmt.Errorf("signing key %s has a damaged private key", key.ID)
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: key.ID}},
		(&jose.SignerOptions{}).WithType("JWT"),
	)
	if err != nil {
		return nil, fmt.Errorf("signing key %s cannot be used to sign", key.ID)
	}
	return signer, nil
}
