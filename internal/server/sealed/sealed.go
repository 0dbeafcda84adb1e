// Package sealed counts the stored secrets of each encryption key, so that an old key can be
// retired. It stands beside package server, because it opens the data of a stopped server;
// package identity/atrest counts and reseals. It locks the data directory (ops/datadir) and
// has no other locks.
package sealed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"freshet/internal/base/errs"
	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/identity/atrest"
	"freshet/internal/ops/datadir"
	"freshet/internal/ops/telemetry"
)

// Secrets returns the number of stored secrets of each encryption key, by the key's id.
// It reads an external etcd directly. Of a stopped server it reads a copy of the embedded
// etcd, because opening the original as another user could leave files that the server cannot
// open. Of a running server it reads the record of the last resealing.
func Secrets(ctx context.Context, cfg *config.Config, active string) (map[string]int, error) {
	if cfg.Etcd.External() {
		return count(ctx, cfg)
	}
	if cfg.Members.Enabled() { // the etcd of one member cannot run without the others
		return atrest.ReadRecord(cfg.Path(atrest.RecordFile), active)
	}
	store := cfg.Path("etcd")
	if _, err := os.Stat(store); err != nil {
		return nil, errs.Newf(errs.NotFound, "secrets of the key cannot be counted: %w; pass the server's data "+
			"directory or its configuration", err)
	}
	held, err := datadir.Acquire(cfg.DataDir)
	if errors.Is(err, datadir.ErrInUse) {
		return atrest.ReadRecord(cfg.Path(atrest.RecordFile), active)
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
	return count(ctx, &copied)
}

// count opens etcd and counts the secrets of each key.
func count(ctx context.Context, cfg *config.Config) (counts map[string]int, err error) {
	log := slog.New(slog.DiscardHandler)
	zap := telemetry.ZapLogger(telemetry.Library(log, "etcd"))
	endpoints := etcd.Endpoints{
		URLs: cfg.Etcd.Endpoints, CAFile: cfg.Etcd.CAFile, CertFile: cfg.Etcd.CertFile, KeyFile: cfg.Etcd.KeyFile,
	}
	if !cfg.Etcd.External() {
		if err := datadir.CheckResourceStore(cfg.DataDir); err != nil {
			return nil, fmt.Errorf("%w; restore the data directory from a backup", err)
		}
		member, failed := etcd.Start(ctx, cfg.Path("etcd"), etcd.Options{
			Logger: zap, Log: log, QuotaBytes: int64(cfg.Etcd.Quota),
		})
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, member.Close()) }()
		endpoints = member.Endpoints()
	}
	client, err := endpoints.Client(zap)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := etcd.OpenFormat(ctx, client, cfg.Etcd.Prefix, log); err != nil {
		return nil, err
	}
	return atrest.Count(ctx, client, cfg.Etcd.Prefix)
}
