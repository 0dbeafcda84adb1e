package atrest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/identity"
)

// Resealer encrypts all stored secrets with the active encryption key after a rotation.
// Writes use the active key anyway; the Resealer rewrites the other records, so that the old
// key can be retired.
type Resealer struct {
	Etcd        *clientv3.Client
	Prefixes    []string // key prefixes of encrypted data: resources, sign-ins
	SigningKeys string   // key of the signing keys in etcd
	Sealer      *identity.Sealer
	Keys        *identity.Keyring
	KeyFile     string // the file of the encryption keys
	Record      string // path of the Record
	Log         *slog.Logger
}

const (
	resealEvery = 5 * time.Second
	resealPage  = 200
)

// Run reloads the key file when it changes, and reseals stale records when the active key has
// changed, until the context is canceled.
func (r *Resealer) Run(ctx context.Context) {
	tick := time.NewTicker(resealEvery)
	defer tick.Stop()
	seen := modified(r.KeyFile)
	done := ""
	r.removeRecord() // the record of an earlier process may be outdated
	for {
		if changed := modified(r.KeyFile); changed.After(seen) {
			if err := r.Sealer.Reload(); err != nil {
				r.Log.Error("new encryption key file cannot be used; continuing with the old keys",
					slog.Any("error", err))
			} else {
				seen = changed
			}
		}
		if active := r.Sealer.KeyIDs()[0]; active != done {
			r.removeRecord()
			n, err := r.pass(ctx)
			switch {
			case err == nil:
				done = active
				r.Log.Info("every secret is sealed with the active encryption key", slog.String("key", active),
					slog.Int("resealed", n))
			case ctx.Err() == nil:
				r.Log.Warn("secrets could not be resealed; retrying", slog.Int("resealed", n), slog.Any("error", err))
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// removeRecord removes the record of the last pass.
func (r *Resealer) removeRecord() {
	if err := os.Remove(r.Record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Log.Warn("record of sealed secrets cannot be removed", slog.Any("error", err))
	}
}

// pass reseals all stale records once, and writes the Record.
func (r *Resealer) pass(ctx context.Context) (resealed int, err error) {
	var problems []error
	found := map[string]int{}
	visit := func(key string, value []byte, revision int64) {
		switch id := identity.SealedWith(value); {
		case id == "":
		case !r.Sealer.Stale(value):
			found[id]++
		default:
			if err := r.reseal(ctx, key, value, revision); err != nil {
				problems = append(problems, err)
				found[id]++
				return
			}
			resealed++
		}
	}
	for _, place := range r.Prefixes {
		if err := each(ctx, r.Etcd, place, visit); err != nil {
			return resealed, err
		}
	}
	n, err := r.resealSigningKeys(ctx)
	if err = errors.Join(append(problems, err)...); err != nil {
		return resealed + n, err
	}
	active := r.Sealer.KeyIDs()[0]
	found[active] += resealed + n
	return resealed + n, (&Record{Active: active, Sealed: found}).write(r.Record)
}

// reseal replaces one value, unless another request has changed it.
func (r *Resealer) reseal(ctx context.Context, key string, sealed []byte, revision int64) error {
	plain, err := r.Sealer.Open(sealed, []byte(key))
	if err != nil {
		return fmt.Errorf("resealing %s: %w", key, err)
	}
	fresh, err := r.Sealer.Seal(plain, []byte(key))
	if err != nil {
		return fmt.Errorf("resealing %s: %w", key, err)
	}
	_, err = r.Etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpPut(key, string(fresh))).
		Commit()
	if err != nil {
		return fmt.Errorf("resealing %s: %w", key, err)
	}
	return nil
}

func (r *Resealer) resealSigningKeys(ctx context.Context) (resealed int, err error) {
	stored, err := r.Etcd.Get(ctx, r.SigningKeys)
	if err != nil {
		return 0, fmt.Errorf("reading the signing keys: %w", err)
	}
	if len(stored.Kvs) == 0 || !r.Sealer.Stale(stored.Kvs[0].Value) {
		return 0, nil
	}
	if err := r.Keys.Reseal(ctx); err != nil {
		return 0, fmt.Errorf("resealing the signing keys: %w", err)
	}
	return 1, nil
}

// modified returns the modification time of a file, or the zero time if it does not exist.
func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
