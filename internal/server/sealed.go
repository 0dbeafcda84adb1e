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
	"freshet/internal/base/version"
	"freshet/internal/config"
	"freshet/internal/identity"
	"freshet/internal/ops/telemetry"
)

// SealedSecrets counts what is stored under each encryption key, by the key's id.
// An etcd of its own is asked. The embedded one is read from a copy when the
// server is stopped, so that whoever asks leaves nothing in the data directory
// that the server's user cannot open; a running server has written down what it
// found when it last sealed everything with the active key.
func SealedSecrets(ctx context.Context, cfg *config.Config, active string) (map[string]int, error) {
	if cfg.Etcd.External() {
		return countSealed(ctx, cfg)
	}
	if cfg.Members.On() { // what one member has is not readable without the others
		return readSealRecord(cfg, active)
	}
	store := cfg.Path("etcd")
	if _, err := os.Stat(store); err != nil {
		return nil, errs.Newf(errs.NotFound, "what is sealed with the key cannot be counted: %w; name the server's "+
			"data directory or its configuration", err)
	}
	held, err := lockDir(cfg.DataDir)
	if errors.Is(err, errDirectoryInUse) {
		return readSealRecord(cfg, active)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = held.release() }() // nothing was written
	temp, err := os.MkdirTemp("", "freshet-count-")
	if err != nil {
		return nil, fmt.Errorf("copying the store to count in it: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }() // what is left is a copy
	if err := os.CopyFS(filepath.Join(temp, "etcd"), os.DirFS(store)); err != nil {
		return nil, fmt.Errorf("copying the store to count in it: %w", err)
	}
	copied := *cfg
	copied.DataDir = temp
	return countSealed(ctx, &copied)
}

// countSealed opens etcd and goes over everything that is stored.
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

// eachStored goes over what is stored under a prefix, page by page.
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

// sealRecord is what a running server found under each key when it last went over
// everything, and which key was the active one then. What is written later is
// sealed with that one.
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
	return writeSecret(path, append(text, '\n'))
}

func readSealRecord(cfg *config.Config, active string) (map[string]int, error) {
	text, err := os.ReadFile(sealRecordFile(cfg))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading what the server has sealed: %w", err)
	}
	var record sealRecord
	if err != nil || json.Unmarshal(text, &record) != nil || record.Active != active {
		return nil, errs.Newf(errs.Unavailable, "the running server has not yet sealed every secret with the active "+
			"key %s: wait until its log says so, and try again", active)
	}
	return record.Sealed, nil
}
