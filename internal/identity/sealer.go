package identity

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Layout of sealed data: magic, id of the root key, salt, nonce, ciphertext
// with its tag.
const (
	sealMagic     = "fsh1"
	sealIDSize    = 8
	sealSaltSize  = 16
	sealNonceSize = 12
	sealTagSize   = 16
	sealHeader    = len(sealMagic) + sealIDSize + sealSaltSize
	sealOverhead  = sealHeader + sealNonceSize + sealTagSize
)

// Sealer encrypts what must rest in a store and be readable again: credentials
// files and signing keys. It also makes the keyed hashes of client secrets.
//
// Root keys live in one file, made at the first start with mode 0600. Each
// record gets its own AES-256-GCM key, derived by HKDF from the root key and a
// random salt, so the number of records is not limited by nonce collisions.
// The record names its root key, so several can be in the file at once.
//
// Rotating on one machine: Rotate, rewrite every record for which Stale is
// true, then Retire the old key. With several replicas, which must all have the
// same file: AddKey, copy the file to every replica (each picks it up by
// itself when it meets the new key), Activate, copy again, rewrite, Retire.
type Sealer struct {
	path string
	mu   sync.Mutex // one reader or writer of the file
	ring atomic.Pointer[sealRing]
}

type sealRing struct {
	active *sealKey
	keys   []*sealKey // in the order of the file
	decoy  string     // a hash that no secret has; see Authenticate
}

type sealKey struct {
	id      [sealIDSize]byte
	root    []byte
	mac     []byte // for HashSecret; its own key, so hashes say nothing of the root
	created int64
}

// OpenSealer reads the key file at path, or makes it with one new key when
// there is none.
func OpenSealer(path string) (*Sealer, error) {
	s := &Sealer{path: path}
	ring, err := loadOrCreateRing(path)
	if err != nil {
		return nil, err
	}
	s.use(ring)
	return s, nil
}

// ReadSealer reads the key file at path, which has to be there.
func ReadSealer(path string) (*Sealer, error) {
	s := &Sealer{path: path}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

func (r *sealRing) find(id []byte) *sealKey {
	for _, k := range r.keys {
		if bytes.Equal(k.id[:], id) {
			return k
		}
	}
	return nil
}

// aead derives the cipher of one record.
func (k *sealKey) aead(salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, k.root, salt, "freshet seal 1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Seal encrypts plaintext under the active key. The same associated data has to
// be given to Open: use it to tie a record to its place (for example its store
// key), so that sealed values cannot be swapped.
func (s *Sealer) Seal(plaintext, associated []byte) ([]byte, error) {
	key := s.ring.Load().active
	out := make([]byte, sealHeader+sealNonceSize, sealOverhead+len(plaintext))
	copy(out, sealMagic)
	copy(out[len(sealMagic):], key.id[:])
	_, _ = rand.Read(out[len(sealMagic)+sealIDSize:]) // salt and nonce; never fails
	aead, err := key.aead(out[len(sealMagic)+sealIDSize : sealHeader])
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return aead.Seal(out, out[sealHeader:], plaintext, sealAssociated(out[:sealHeader], associated)), nil
}

// Open decrypts what Seal made. A key that is not known yet is looked for in
// the file once more, so that a rotated file only has to be put in its place.
func (s *Sealer) Open(sealed, associated []byte) ([]byte, error) {
	if len(sealed) < sealOverhead || string(sealed[:len(sealMagic)]) != sealMagic {
		return nil, fmt.Errorf("decrypt: %w: it is not in the format of this server", ErrUnsealable)
	}
	id := sealed[len(sealMagic) : len(sealMagic)+sealIDSize]
	key, err := s.keyFor(id)
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w", err)
	}
	aead, err := key.aead(sealed[len(sealMagic)+sealIDSize : sealHeader])
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w", err)
	}
	nonce, ciphertext := sealed[sealHeader:sealHeader+sealNonceSize], sealed[sealHeader+sealNonceSize:]
	plaintext, err := aead.Open(nil, nonce, ciphertext, sealAssociated(sealed[:sealHeader], associated))
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w: it was changed, or copied from another record", ErrUnsealable)
	}
	return plaintext, nil
}

func (s *Sealer) keyFor(id []byte) (*sealKey, error) {
	if key := s.ring.Load().find(id); key != nil {
		return key, nil
	}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	if key := s.ring.Load().find(id); key != nil {
		return key, nil
	}
	return nil, fmt.Errorf("%w: key id %s", ErrSealKeyMissing, hex.EncodeToString(id))
}

// sealAssociated binds the header too: an attacker cannot move a salt or id.
func sealAssociated(header, associated []byte) []byte {
	return append(bytes.Clone(header), associated...)
}

// Sealed reports whether data is in sealed form.
func Sealed(data []byte) bool {
	return len(data) >= sealOverhead && string(data[:len(sealMagic)]) == sealMagic
}

// Stale reports whether data should be sealed again: it is in clear, or under a
// key that is no longer the active one.
func (s *Sealer) Stale(data []byte) bool {
	active := s.ring.Load().active
	return !Sealed(data) || !bytes.Equal(data[len(sealMagic):len(sealMagic)+sealIDSize], active.id[:])
}

// HashSecret returns the keyed hash under which a client secret is remembered:
// h1.<key id>.<HMAC-SHA256>. Client secrets are 32 random bytes, so a slow hash
// would only slow down ourselves.
func (s *Sealer) HashSecret(secret Secret) string { return s.ring.Load().active.hash(secret) }

func (k *sealKey) hash(secret Secret) string {
	return "h1." + hex.EncodeToString(k.id[:]) + "." + base64.RawURLEncoding.EncodeToString(k.sum(secret))
}

func (k *sealKey) sum(secret Secret) []byte {
	mac := hmac.New(sha256.New, k.mac)
	mac.Write([]byte(secret.Reveal()))
	return mac.Sum(nil)
}

// use puts a ring into force.
func (s *Sealer) use(ring *sealRing) {
	ring.decoy = ring.active.hash(GenerateSecret())
	s.ring.Store(ring)
}

// CheckSecret compares in constant time. A hash that is malformed or made with
// a key that is gone matches nothing.
func (s *Sealer) CheckSecret(hash string, secret Secret) bool {
	ring := s.ring.Load()
	key, want := ring.active, make([]byte, sha256.Size)
	valid := 0
	if rest, ok := strings.CutPrefix(hash, "h1."); ok {
		idText, sumText, _ := strings.Cut(rest, ".")
		id, idErr := hex.DecodeString(idText)
		sum, sumErr := base64.RawURLEncoding.DecodeString(sumText)
		if k := ring.find(id); k != nil && idErr == nil && sumErr == nil && len(sum) == sha256.Size {
			key, want, valid = k, sum, 1
		}
	}
	return subtle.ConstantTimeCompare(key.sum(secret), want)&valid == 1
}
