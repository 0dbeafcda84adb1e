// Package atrest owns the secrets of the server at rest in etcd: it stores the signing keys,
// reseals every stored secret after the encryption key was rotated, and counts the secrets of
// each key. How secrets are sealed is in package identity, which resources have secrets is the
// business of the resource API. It has no locks.
package atrest

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/identity"
)

// KeyStore implements identity.KeyStore with one value in etcd.
type KeyStore struct {
	Etcd *clientv3.Client
	Key  string
}

// Load implements identity.KeyStore.
func (s KeyStore) Load(ctx context.Context) ([]byte, int64, error) {
	res, err := s.Etcd.Get(ctx, s.Key)
	if err != nil {
		return nil, 0, err
	}
	if len(res.Kvs) == 0 {
		return nil, 0, nil
	}
	return res.Kvs[0].Value, res.Kvs[0].ModRevision, nil
}

// Save implements identity.KeyStore.
func (s KeyStore) Save(ctx context.Context, data []byte, revision int64) error {
	res, err := s.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.Key), "=", revision)).
		Then(clientv3.OpPut(s.Key, string(data))).
		Commit()
	if err != nil {
		return err
	}
	if !res.Succeeded {
		return identity.ErrKeysChanged
	}
	return nil
}
