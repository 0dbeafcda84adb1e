// Package etcdstore implements signin.Store in etcd. It encrypts each record with the key
// as associated data, so that a value cannot be moved to another key.
package etcdstore

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
	"freshet/internal/identity/signin"
)

// Sealer encrypts data with associated data; identity.Sealer implements it.
type Sealer interface {
	Seal(plaintext, associated []byte) ([]byte, error)
	Open(sealed, associated []byte) ([]byte, error)
}

// Store implements signin.Store.
type Store struct {
	etcd   *clientv3.Client
	prefix string
	sealer Sealer
	log    *slog.Logger
}

var _ signin.Store = (*Store)(nil)

// New returns a store under a prefix, which must end in a slash.
func New(etcd *clientv3.Client, prefix string, sealer Sealer, log *slog.Logger) *Store {
	return &Store{etcd, prefix, sealer, log}
}

// page is how many records one request reads.
const page = 500

// Get implements signin.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, int64, error) {
	res, err := s.etcd.Get(ctx, s.prefix+key)
	if err != nil {
		return nil, 0, unavailable(err)
	}
	if len(res.Kvs) == 0 {
		return nil, 0, nil
	}
	value, err := s.sealer.Open(res.Kvs[0].Value, res.Kvs[0].Key)
	return value, res.Kvs[0].ModRevision, err
}

// Put implements signin.Store.
func (s *Store) Put(ctx context.Context, key string, value []byte, revision int64) (int64, error) {
	sealed, err := s.sealer.Seal(value, []byte(s.prefix+key))
	if err != nil {
		return 0, err
	}
	return s.change(ctx, key, revision, clientv3.OpPut(s.prefix+key, string(sealed)))
}

// Delete implements signin.Store.
func (s *Store) Delete(ctx context.Context, key string, revision int64) (int64, error) {
	return s.change(ctx, key, revision, clientv3.OpDelete(s.prefix+key))
}

func (s *Store) change(ctx context.Context, key string, revision int64, op clientv3.Op) (int64, error) {
	res, err := s.etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(s.prefix+key), "=",
		revision)).Then(op).Commit()
	if err != nil {
		return 0, unavailable(err)
	}
	if !res.Succeeded {
		return 0, signin.ErrChanged
	}
	return res.Header.Revision, nil
}

// List implements signin.Store.
func (s *Store) List(ctx context.Context, visit func(key string, value []byte, revision int64)) (int64, error) {
	from, end, at := s.prefix, clientv3.GetPrefixRangeEnd(s.prefix), int64(0)
	for {
		res, err := s.etcd.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(at))
		if err != nil {
			return 0, unavailable(err)
		}
		if at == 0 {
			at = res.Header.Revision
		}
		for _, kv := range res.Kvs {
			s.visit(kv.Key, kv.Value, kv.ModRevision, visit)
		}
		if !res.More || len(res.Kvs) == 0 {
			return at, nil
		}
		from = string(res.Kvs[len(res.Kvs)-1].Key) + "\x00"
	}
}

// visit decrypts a record and calls visit. It logs and skips a record that cannot be
// decrypted, so that nobody can sign in with it.
func (s *Store) visit(key, sealed []byte, revision int64, visit func(string, []byte, int64)) {
	name := strings.TrimPrefix(string(key), s.prefix)
	value, err := s.sealer.Open(sealed, key)
	if err != nil {
		sort, _, _ := strings.Cut(name, "/")
		s.log.Error("stored sign-in record cannot be decrypted; skipping it", slog.String("sort", sort),
			slog.Any("error", err))
		return
	}
	visit(name, value, revision)
}

// Watch implements signin.Store.
func (s *Store) Watch(ctx context.Context, after int64, visit func(key string, value []byte, revision int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for res := range s.etcd.Watch(clientv3.WithRequireLeader(ctx), s.prefix, clientv3.WithPrefix(),
		clientv3.WithRev(after+1)) {
		if err := res.Err(); err != nil {
			return fmt.Errorf("watching sign-in records: %w", err)
		}
		for _, event := range res.Events {
			if event.Type == clientv3.EventTypeDelete {
				visit(strings.TrimPrefix(string(event.Kv.Key), s.prefix), nil, event.Kv.ModRevision)
				continue
			}
			s.visit(event.Kv.Key, event.Kv.Value, event.Kv.ModRevision, visit)
		}
	}
	return nil
}

func unavailable(err error) error {
	return errs.Newf(errs.Unavailable, "store of sign-in records is unavailable: %w", err)
}
