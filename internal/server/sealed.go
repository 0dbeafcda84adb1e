package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
	"freshet/internal/base/privatefile"
	"freshet/internal/base/version"
	"freshet/internal/config"
	"freshet/internal/identity"
	"freshet/internal/ops/datadir"
	"freshet/internal/ops/telemetry"
)

// SealedSecrets returns the number of stored secrets of each encryption key, by the key's id.
// It reads an external etcd directly. Of a stopped server it reads a copy of the embedded
// etcd, because opening the original as another user could leave files that the server cannot
// open. Of a running server it reads the record of the last resealing.
func SealedSecrets(ctx context.Context, cfg *config.Config, active string) (map[string]int, error) {
	if cfg.Etcd.External() {
		return countSealed(ctx, cfg)
	}
	if cfg.Members.Enabled() { // the etcd of one member cannot run without the others
		return readSealRecord(cfg, active)
	}
	store := cfg.Path("etcd")
	if _, err := os.Stat(store); err != nil {
		return nil, errs.Newf(errs.NotFound, "secrets of the key cannot be counted: %w; pass the server's data "+
			"directory or its configuration", err)
	}
	held, err := datadir.Acquire(cfg.DataDir)
	if errors.Is(err, datadir.ErrInUse) {
		return readSealRecord(cfg, active)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = held.Release() }() // nothing was written
	temp, err := os.MkdirTemp("", "freshet-count-")
	if err != nil {
		return nil, fmt.Errorf("copying the store to count in it: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }() // it is only a copy
	if err := os.CopyFS(filepath.Join(temp, "etcd"), os.DirFS(store)); err != nil {
		return nil, fmt.Errorf("copying the store to count in it: %w", err)
	}
	copied := *cfg
	copied.DataDir = temp
	return countSealed(ctx, &copied)
}

// countSealed opens etcd and counts the secrets of each key.
func countSealed(ctx context.Context, cfg *config.Config) (counts map[string]int, err error) {
	s := &server{
		cfg: cfg, log: slog.New(slog.DiscardHandler), failed: make(chan error, 1),
		metrics: telemetry.NewMetrics(version.Get()),
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.openEtcd(ctx); err != nil {
		return nil, err
	}
	counts = map[string]int{}
	return counts, eachStored(ctx, s.etcd, cfg.Etcd.Prefix+"/", func(_ string, value []byte, _ int64) {
		if id := identity.SealedWith(value); id != "" {
			counts[id]++
		}
	})
}

// eachStored calls visit for every key with a prefix, in pages.
func eachStored(ctx context.Context, etcd *clientv3.Client, prefix string,
	visit func(key string, value []byte, revision int64),
) error {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		page, err := etcd.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(resealPage))
		if err != nil {
			return fmt.Errorf("reading the stored resources: %w", err)
		}
		for _, kv := range page.Kvs {
			visit(string(kv.Key), kv.Value, kv.ModRevision)
		}
		if !page.More || len(page.Kvs) == 0 {
			return nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

// sealRecord contains the number of secrets of each key after the last resealing, and the
// active key at that time, which encrypts all later writes.
type sealRecord struct {
	Active string         `json:"active"`
	Sealed map[string]int `json:"sealed"`
}

func sealRecordFile(cfg *config.Config) string { return cfg.Path("encryption.sealed") }

func (r *sealRecord) write(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return privatefile.Write(path, append(text, '\n'))
}

func readSealRecord(cfg *config.Config, active string) (map[string]int, error) {
	text, err := os.ReadFile(sealRecordFile(cfg))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the record of sealed secrets: %w", err)
	}
	var record sealRecord
	if err != nil || json.Unmarshal(text, &record) != nil || record.Active != active {
		return nil, errs.Newf(errs.Unavailable, "running server has not yet sealed every secret with the active key "+
			"%s; wait until its log reports it, and try again", active)
	}
	return record.Sealed, nil
}
