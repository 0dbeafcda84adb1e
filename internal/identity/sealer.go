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

// Format of sealed data: magic, id of the root key, salt, nonce, ciphertext with its tag.
const (
	sealMagic     = "fsh1"
	sealIDSize    = 8
	sealSaltSize  = 16
	sealNonceSize = 12
	sealTagSize   = 16
	sealHeader    = len(sealMagic) + sealIDSize + sealSaltSize
	sealOverhead  = sealHeader + sealNonceSize + sealTagSize
)

// Sealer encrypts data at rest: credentials files and signing keys. It also computes the
// keyed hashes of client secrets.
//
// Root keys are in one file, created at the first start with mode 0600. Each record has
// its own AES-256-GCM key, derived with HKDF from the root key and a random salt, so nonce
// collisions do not limit the number of records. A record contains the id of its root
// key, so the file can contain several.
//
// Rotation on one machine: call Rotate, rewrite every record for which Stale is true, then
// Retire the old key. Replicas must all have the same file. Rotation with replicas:
// AddKey, copy the file to every replica (each reloads it when it meets the new key),
// Activate, copy again, rewrite, Retire.
type Sealer struct {
	path string
	mu   sync.Mutex // serializes reads and writes of the file
	ring atomic.Pointer[sealRing]
}

type sealRing struct {
	active *sealKey
	keys   []*sealKey // in the order of the file
	decoy  string     // the hash of an unknown secret; see Authenticate
}

type sealKey struct {
	id      [sealIDSize]byte
	root    []byte
	mac     []byte // derived key for HashSecret, so that hashes reveal nothing about root
	created int64
}

// OpenSealer reads the key file at path, or creates it with one new key.
func OpenSealer(path string) (*Sealer, error) {
	s := &Sealer{path: path}
	ring, err := loadOrCreateRing(path)
	if err != nil {
		return nil, err
	}
	s.setRing(ring)
	return s, nil
}

// ReadSealer reads the key file at path. It returns an error if the file does not exist.
func ReadSealer(path string) (*Sealer, error) {
	s := &Sealer{path: path}
	return s, s.Reload()
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

// Seal encrypts plaintext with the active key. Open needs the same associated data: use
// the record's key in the store, so that nobody can swap sealed values between records.
func (s *Sealer) Seal(plaintext, associated []byte) ([]byte, error) {
	key := s.ring.Load().active
	out := make([]byte, sealHeader+sealNonceSize, sealOverhead+len(plaintext))
	copy(out, sealMagic)
	copy(out[len(sealMagic):], key.id[:])
	_, _ = rand.Read(out[len(sealMagic)+sealIDSize:]) // salt and nonce; never fails
	aead, err := key.aead(out[len(sealMagic)+sealIDSize : sealHeader])
	if err != nil {
		return nil, fmt.Errorf("encrypting data: %w", err)
	}
	return aead.Seal(out, out[sealHeader:], plaintext, sealAssociated(out[:sealHeader], associated)), nil
}

// Open decrypts the result of Seal. If the key is unknown it reloads the file, so that
// operators only have to replace the file after a rotation.
func (s *Sealer) Open(sealed, associated []byte) ([]byte, error) {
	if len(sealed) < sealOverhead || string(sealed[:len(sealMagic)]) != sealMagic {
		return nil, fmt.Errorf("decrypting data: %w: it is not in the format of this server", ErrUnsealable)
	}
	id := sealed[len(sealMagic) : len(sealMagic)+sealIDSize]
	key, err := s.keyFor(id)
	if err != nil {
		return nil, fmt.Errorf("decrypting data: %w", err)
	}
	aead, err := key.aead(sealed[len(sealMagic)+sealIDSize : sealHeader])
	if err != nil {
		return nil, fmt.Errorf("decrypting data: %w", err)
	}
	nonce, ciphertext := sealed[sealHeader:sealHeader+sealNonceSize], sealed[sealHeader+sealNonceSize:]
	plaintext, err := aead.Open(nil, nonce, ciphertext, sealAssociated(sealed[:sealHeader], associated))
	if err != nil {
		return nil, fmt.Errorf("decrypting data: %w: it was changed, or copied from another record", ErrUnsealable)
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

// sealAssociated adds the header to the associated data, so that an attacker cannot
// replace the salt or the key id.
func sealAssociated(header, associated []byte) []byte {
	return append(bytes.Clone(header), associated...)
}

// Sealed reports whether data has the format of Seal.
func Sealed(data []byte) bool {
	return len(data) >= sealOverhead && string(data[:len(sealMagic)]) == sealMagic
}

// Stale reports whether data should be sealed again: it is not encrypted, or not with the
// active key.
func (s *Sealer) Stale(data []byte) bool {
	active := s.ring.Load().active
	return !Sealed(data) || !bytes.Equal(data[len(sealMagic):len(sealMagic)+sealIDSize], active.id[:])
}

// HashSecret returns the keyed hash of a client secret: h1.<key id>.<HMAC-SHA256>. Client
// secrets are 32 random bytes, so a slow password hash would not make them safer.
func (s *Sealer) HashSecret(secret Secret) string { return s.ring.Load().active.hash(secret) }

func (k *sealKey) hash(secret Secret) string {
	return "h1." + hex.EncodeToString(k.id[:]) + "." + base64.RawURLEncoding.EncodeToString(k.sum(secret))
}

func (k *sealKey) sum(secret Secret) []byte {
	mac := hmac.New(sha256.New, k.mac)
	mac.Write([]byte(secret.Reveal()))
	return mac.Sum(nil)
}

// setRing makes ring the current ring.
func (s *Sealer) setRing(ring *sealRing) {
	ring.decoy = ring.active.hash(GenerateSecret())
	s.ring.Store(ring)
}

// CheckSecret reports whether hash is the hash of secret, in constant time. A malformed
// hash, or one with a key that the file does not contain, matches no secret.
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
