package identity

import "context"

// KeyStore stores the signing keys for all replicas as one value that is replaced by
// compare and swap.
type KeyStore interface {
	// Load returns the value and its revision, or nil and 0 if the store is empty. Load
	// must be linearizable: it returns every completed Save of any replica.
	Load(ctx context.Context) (data []byte, revision int64, err error)
	// Save stores the value if revision is the stored revision (0: the store is empty).
	// Otherwise it returns ErrKeysChanged.
	Save(ctx context.Context, data []byte, revision int64) error
}

// SealedStore returns a KeyStore that encrypts the data before it reaches store. name is
// the associated data: only a store with the same name can decrypt it.
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
