package identity

import "context"

// KeyStore keeps the signing keys for all replicas: one value, replaced by
// compare and swap.
type KeyStore interface {
	// Load returns the value and its revision; nil and 0 when there is none. It
	// sees every Save that has returned, on any replica.
	Load(ctx context.Context) (data []byte, revision int64, err error)
	// Save stores the value if the revision is still the stored one (0: nothing
	// is stored yet), else fails with an error that is ErrKeysChanged.
	Save(ctx context.Context, data []byte, revision int64) error
}

// SealedStore wraps a KeyStore so that it only ever sees sealed data. The name
// ties the data to its place.
func SealedStore(store KeyStore, sealer *Sealer, name string) KeyStore {
	return &sealedStore{store: store, sealer: sealer, name: []byte(name)}
}

type sealedStore struct {
	store  KeyStore
	sealer *Sealer
	name   []byte
}

func (s *sealedStore) Load(ctx context.Context) ([]byte, int64, error) {
	sealed, revision, err := s.store.Load(ctx)
	if err != nil || sealed == nil {
		return nil, revision, err
	}
	data, err := s.sealer.Open(sealed, s.name)
	return data, revision, err
}

func (s *sealedStore) Save(ctx context.Context, data []byte, revision int64) error {
	sealed, err := s.sealer.Seal(data, s.name)
	if err != nil {
		return err
	}
	return s.store.Save(ctx, sealed, revision)
}
