package server

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

// resealer encrypts all stored secrets with the active encryption key after a rotation.
// Writes use the active key anyway; the resealer rewrites the other records, so that the old
// key can be retired.
type resealer struct {
	etcd           *clientv3.Client
	prefixes       []string // key prefixes of encrypted data: resources, sign-ins
	signingKeysKey string   // key of the signing keys in etcd
	sealer         *identity.Sealer
	keys           *identity.Keyring
	file           string // the key file
	record         string // path of the sealRecord
	log            *slog.Logger
}

const (
	resealEvery = 5 * time.Second
	resealPage  = 200
)

func (s *server) resealer() *resealer {
	return &resealer{
		etcd: s.etcd, prefixes: []string{s.cfg.Etcd.Prefix + "/resources/", signInPrefix(s.cfg)},
		signingKeysKey: s.cfg.Etcd.Prefix + "/signing-keys",
		sealer:         s.identity.sealer, keys: s.identity.keys, file: s.cfg.EncryptionKeyFile(),
		record: sealRecordFile(s.cfg), log: s.log,
	}
}

// run reloads the key file when it changes, and reseals stale records when the active key has
// changed, until the context is canceled.
func (r *resealer) run(ctx context.Context) {
	tick := time.NewTicker(resealEvery)
	defer tick.Stop()
	seen := modified(r.file)
	done := ""
	r.removeRecord() // the record of an earlier process may be outdated
	for {
		if changed := modified(r.file); changed.After(seen) {
			if err := r.sealer.Reload(); err != nil {
				r.log.Error("new encryption key file cannot be used; continuing with the old keys",
					slog.Any("error", err))
			} else {
				seen = changed
			}
		}
		if active := r.sealer.KeyIDs()[0]; active != done {
			r.removeRecord()
			n, err := r.pass(ctx)
			switch {
			case err == nil:
				done = active
				r.log.Info("every secret is sealed with the active encryption key", slog.String("key", active),
					slog.Int("resealed", n))
			case ctx.Err() == nil:
				r.log.Warn("secrets could not be resealed; retrying", slog.Int("resealed", n),
					slog.Any("error", err))
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
func (r *resealer) removeRecord() {
	if err := os.Remove(r.record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("record of sealed secrets cannot be removed", slog.Any("error", err))
	}
}

// pass reseals all stale records once, and writes the sealRecord.
func (r *resealer) pass(ctx context.Context) (resealed int, err error) {
	var problems []error
	found := map[string]int{}
	visit := func(key string, value []byte, revision int64) {
		switch id := identity.SealedWith(value); {
		case id == "":
		case !r.sealer.Stale(value):
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
	for _, place := range r.prefixes {
		if err := eachStored(ctx, r.etcd, place, visit); err != nil {
			return resealed, err
		}
	}
	n, err := r.resealSigningKeys(ctx)
	if err = errors.Join(append(problems, err)...); err != nil {
		return resealed + n, err
	}
	active := r.sealer.KeyIDs()[0]
	found[active] += resealed + n
	return resealed + n, (&sealRecord{Active: active, Sealed: found}).write(r.record)
}

// reseal replaces one value, unless another request has changed it.
func (r *resealer) reseal(ctx context.Context, key string, sealed []byte, revision int64) error {
	plain, err := r.sealer.Open(sealed, []byte(key))
	if err != nil {
		return fmt.Errorf("resealing %s: %w", key, err)
	}
	fresh, err := r.sealer.Seal(plain, []byte(key))
	if err != nil {
		return fmt.Errorf("resealing %s: %w", key, err)
	}
	_, err = r.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpPut(key, string(fresh))).
		Commit()
	if err != nil {
		return fmt.Errorf("resealing %s: %w", key, err)
	}
	return nil
}

func (r *resealer) resealSigningKeys(ctx context.Context) (resealed int, err error) {
	stored, err := r.etcd.Get(ctx, r.signingKeysKey)
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

// modified returns the modification time of a file, or the zero time if it does not exist.
func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
