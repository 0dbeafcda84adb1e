package identity

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
)

// sealFile is the key file. It is JSON, so that an operator can see its keys and when they
// were created.
type sealFile struct {
	Version int           `json:"version"`
	Active  string        `json:"active"`
	Keys    []sealFileKey `json:"keys"`
}

type sealFileKey struct {
	ID      string `json:"id"`
	Created string `json:"created"`
	Key     []byte `json:"key"`
	// Sum is the beginning of a hash of ID and Key, which detects damage of the file. Files of earlier
	// versions do not have it.
	Sum string `json:"sum,omitempty"`
}

// sumSealKey returns the value of sealFileKey.Sum. It reveals nothing about the key, which is random.
func sumSealKey(id, key []byte) string {
	sum := sha256.Sum256(slices.Concat([]byte("freshet key file 1"), id, key))
	return hex.EncodeToString(sum[:4])
}

const maxSealFile = 1 << 20

// KeyIDs returns the ids of all keys, the active one first.
func (s *Sealer) KeyIDs() []string {
	ring := s.ring.Load()
	ids := []string{hex.EncodeToString(ring.active.id[:])}
	for _, k := range ring.keys {
		if k != ring.active {
			ids = append(ids, hex.EncodeToString(k.id[:]))
		}
	}
	return ids
}

// Rotate adds a key and activates it.
func (s *Sealer) Rotate() (id string, err error) {
	err = s.change(func(r *sealRing) error {
		key := newSealKey()
		r.keys, r.active, id = append(r.keys, key), key, hex.EncodeToString(key.id[:])
		return nil
	})
	return id, err
}

// AddKey adds a key that can decrypt, but does not encrypt yet.
func (s *Sealer) AddKey() (id string, err error) {
	err = s.change(func(r *sealRing) error {
		key := newSealKey()
		r.keys, id = append(r.keys, key), hex.EncodeToString(key.id[:])
		return nil
	})
	return id, err
}

// Activate makes a key of the file the active one, which encrypts.
func (s *Sealer) Activate(id string) error {
	return s.change(func(r *sealRing) error {
		key, err := r.findOrError(id)
		if err != nil {
			return err
		}
		r.active = key
		return nil
	})
}

// Retirable returns an error if a key cannot be retired: it does not exist, or it is the
// active one. The caller must check that no data is encrypted with it.
func (s *Sealer) Retirable(id string) error {
	_, err := s.ring.Load().retirable(id)
	return err
}

func (r *sealRing) retirable(id string) (*sealKey, error) {
	key, err := r.findOrError(id)
	if err == nil && key == r.active {
		err = errs.Newf(errs.Conflict, "key %s is the active one, which encrypts new data; rotate first", id)
	}
	return key, err
}

// Retire removes a key from the file. No data may be encrypted with it any more, because
// it could not be decrypted. Retire returns the path of a copy of the old key file, with
// which an operator can undo it.
func (s *Sealer) Retire(id string) (before string, err error) {
	before = s.path + ".before-retiring-" + id
	err = s.change(func(r *sealRing) error {
		key, err := r.retirable(id)
		if err != nil {
			return err
		}
		if err := replaceFile(before, r.encode(), s.path); err != nil {
			return fmt.Errorf("copying the key file: %w", err)
		}
		r.keys = slices.DeleteFunc(r.keys, func(k *sealKey) bool { return k == key })
		return nil
	})
	return before, err
}

// SealedWith returns the id of the key with which data is encrypted, or "".
func SealedWith(data []byte) string {
	if !Sealed(data) {
		return ""
	}
	return hex.EncodeToString(data[len(sealMagic) : len(sealMagic)+sealIDSize])
}

// Reload reads the key file again.
func (s *Sealer) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ring, err := loadRing(s.path)
	if err != nil {
		return err
	}
	s.setRing(ring)
	return nil
}

// change edits the ring of the file. It makes the result current only after it is synced
// to disk.
func (s *Sealer) change(edit func(*sealRing) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ring, err := loadRing(s.path)
	if err != nil {
		return err
	}
	if err := edit(ring); err != nil {
		return err
	}
	if err := replaceFile(s.path, ring.encode(), s.path); err != nil {
		return fmt.Errorf("writing the key file: %w", err)
	}
	s.setRing(ring)
	return nil
}

// findOrError is findHex with an error that lists the existing keys.
func (r *sealRing) findOrError(id string) (*sealKey, error) {
	if key := r.findHex(id); key != nil {
		return key, nil
	}
	known := make([]string, len(r.keys))
	for i, k := range r.keys {
		known[i] = hex.EncodeToString(k.id[:])
	}
	return nil, errs.Newf(errs.NotFound, "key %q does not exist; the key file contains %s", id,
		strings.Join(known, ", "))
}

func (r *sealRing) findHex(id string) *sealKey {
	raw, err := hex.DecodeString(id)
	if err != nil {
		return nil
	}
	return r.find(raw)
}

func newSealKey() *sealKey {
	key := &sealKey{root: make([]byte, 32), created: time.Now().Unix()}
	_, _ = rand.Read(key.id[:]) // never fails
	_, _ = rand.Read(key.root)
	key.derive()
	return key
}

// derive computes the key for HashSecret. HKDF fails only for lengths above its maximum.
func (k *sealKey) derive() {
	mac, err := hkdf.Key(sha256.New, k.root, nil, "freshet client secrets 1", 32)
	if err != nil {
		panic("identity: deriving a key of 32 bytes: " + err.Error())
	}
	k.mac = mac
}

func (r *sealRing) encode() []byte {
	file := sealFile{Version: 1, Active: hex.EncodeToString(r.active.id[:])}
	for _, k := range r.keys {
		file.Keys = append(file.Keys, sealFileKey{
			ID:      hex.EncodeToString(k.id[:]),
			Created: time.Unix(k.created, 0).UTC().Format(time.RFC3339),
			Key:     k.root,
			Sum:     sumSealKey(k.id[:], k.root),
		})
	}
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		panic("identity: encoding the key file: " + err.Error()) // cannot fail for strings and bytes
	}
	return append(data, '\n')
}

func parseRing(data []byte) (*sealRing, error) {
	var file sealFile
	if err := json.Unmarshal(data, &file); err != nil {
		// The decoder's error may quote the file, so it is not wrapped.
		return nil, errors.New("key file is not valid JSON")
	}
	if file.Version != 1 {
		return nil, fmt.Errorf("key file has version %d, but this program reads version 1", file.Version)
	}
	ring := &sealRing{}
	for i, k := range file.Keys {
		id, err := hex.DecodeString(k.ID)
		if err != nil || len(id) != sealIDSize || len(k.Key) != 32 || k.Sum != "" && k.Sum != sumSealKey(id, k.Key) {
			return nil, fmt.Errorf("key %d of the key file is damaged", i)
		}
		if ring.find(id) != nil {
			return nil, fmt.Errorf("key file lists key %s twice", k.ID)
		}
		created, err := time.Parse(time.RFC3339, k.Created)
		if err != nil {
			return nil, fmt.Errorf("key %d of the key file has no valid creation time", i)
		}
		key := &sealKey{id: [sealIDSize]byte(id), root: k.Key, created: created.Unix()}
		key.derive()
		ring.keys = append(ring.keys, key)
		if k.ID == file.Active {
			ring.active = key
		}
	}
	if ring.active == nil {
		return nil, errors.New("key file has no active key")
	}
	return ring, nil
}

func loadRing(path string) (*sealRing, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the key file: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("opening the key file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o027 != 0 {
		return nil, fmt.Errorf("key file %s has mode %04o, so other users may read or change it; set the mode to 0600",
			path, mode)
	}
	if info.Size() > maxSealFile {
		return nil, fmt.Errorf("key file %s is too large; the maximum is %d bytes", path, maxSealFile)
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, fmt.Errorf("reading the key file: %w", err)
	}
	ring, err := parseRing(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ring, nil
}

// loadOrCreateRing creates the file if it does not exist. If two processes create it
// concurrently, one succeeds and the other one loads its file.
func loadOrCreateRing(path string) (*sealRing, error) {
	ring, err := loadRing(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return ring, err
	}
	key := newSealKey()
	ring = &sealRing{active: key, keys: []*sealKey{key}}
	err = atomicfile.Create(path, ring.encode())
	switch {
	case errors.Is(err, fs.ErrExist):
		return loadRing(path)
	case err != nil:
		return nil, fmt.Errorf("creating the key file: %w", err)
	}
	return ring, nil
}

// NewKeyFile returns the contents of a key file with one new key, for callers that install
// it on several machines.
func NewKeyFile() []byte {
	key := newSealKey()
	return (&sealRing{keys: []*sealKey{key}, active: key}).encode()
}
