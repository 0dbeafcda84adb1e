package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/identity"
)

// resealer brings what is stored under the active sealing key after that was
// rotated. A record that is written is sealed anew anyway; this takes care of
// those that nobody writes, so that the old key can be retired.
type resealer struct {
	etcd   *clientv3.Client
	prefix string // of the resources
	signer string // the key of the signing keys
	sealer *identity.Sealer
	keys   *identity.Keyring
	file   string
	log    *slog.Logger
}

const (
	resealEvery = 5 * time.Second
	resealPage  = 200
)

func (s *server) resealer() *resealer {
	return &resealer{
		etcd: s.etcd, prefix: s.cfg.Etcd.Prefix + "/resources/", signer: s.cfg.Etcd.Prefix + "/signing-keys",
		sealer: s.identity.sealer, keys: s.identity.keys, file: sealFile(s.cfg), log: s.log,
	}
}

// run looks for a new key file now and then, and for stale records whenever the
// active key is another one than the last time.
func (r *resealer) run(ctx context.Context) {
	tick := time.NewTicker(resealEvery)
	defer tick.Stop()
	seen := modified(r.file)
	done := ""
	for {
		if changed := modified(r.file); changed.After(seen) {
			if err := r.sealer.Reload(); err != nil {
				r.log.Error("the new encryption key file cannot be used, going on with the old one", slog.String("error", err.Error()))
			} else {
				seen = changed
			}
		}
		if active := r.sealer.KeyIDs()[0]; active != done {
			n, err := r.pass(ctx)
			switch {
			case err == nil:
				done = active
				r.log.Info("every secret is sealed with the active encryption key", slog.String("key", active), slog.Int("resealed", n))
			case ctx.Err() == nil:
				r.log.Warn("resealing secrets, trying again", slog.Int("resealed", n), slog.String("error", err.Error()))
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// pass goes over everything that is stored, once.
func (r *resealer) pass(ctx context.Context) (resealed int, err error) {
	from, end := r.prefix, clientv3.GetPrefixRangeEnd(r.prefix)
	var problems []error
	for {
		page, err := r.etcd.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(resealPage))
		if err != nil {
			return resealed, fmt.Errorf("reading the stored resources: %w", err)
		}
		for _, kv := range page.Kvs {
			if !identity.Sealed(kv.Value) || !r.sealer.Stale(kv.Value) {
				continue
			}
			if err := r.reseal(ctx, string(kv.Key), kv.Value, kv.ModRevision); err != nil {
				problems = append(problems, err)
				continue
			}
			resealed++
		}
		if !page.More || len(page.Kvs) == 0 {
			break
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
	n, err := r.resealSigningKeys(ctx)
	return resealed + n, errors.Join(append(problems, err)...)
}

// reseal replaces one value, unless somebody else just did.
func (r *resealer) reseal(ctx context.Context, key string, sealed []byte, revision int64) error {
	plain, err := r.sealer.Open(sealed, []byte(key))
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	fresh, err := r.sealer.Seal(plain, []byte(key))
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	_, err = r.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpPut(key, string(fresh))).
		Commit()
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (r *resealer) resealSigningKeys(ctx context.Context) (resealed int, err error) {
	stored, err := r.etcd.Get(ctx, r.signer)
	if err != nil {
		return 0, fmt.Errorf("reading the signing keys: %w", err)
	}
	if len(stored.Kvs) == 0 || !r.sealer.Stale(stored.Kvs[0].Value) {
		return 0, nil
	}
	if err := r.keys.Reseal(ctx); err != nil {
		return 0, fmt.Errorf("resealing the signing keys: %w", err)
	}
	return 1, nil
}
