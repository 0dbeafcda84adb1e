package server

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"freshet/internal/config"
	"freshet/internal/ops/backup"
)

// backups takes scheduled backups and counts them.
type backups struct {
	cfg   config.Backup
	stage func(ctx context.Context, progress func(string)) (string, func() error, error)
	log   *slog.Logger

	done, failed atomic.Int64
	last         atomic.Int64 // start of the newest backup in Unix seconds
}

func (s *server) newBackups() *backups {
	return &backups{cfg: s.cfg.Backup, stage: s.stage, log: s.log}
}

// backupRetry is the backoff after a failed backup.
const backupRetry = 5 * time.Minute

// run takes a backup whenever the newest one in the folder is old enough, until the context
// is canceled. A backup that was due while the server was stopped is taken at the start.
func (b *backups) run(ctx context.Context) {
	if b.cfg.Directory == "" {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		timer.Reset(b.takeIfDue(ctx, time.Now()))
	}
}

// takeIfDue takes a backup if one is due, and returns the time until the next call.
func (b *backups) takeIfDue(ctx context.Context, now time.Time) time.Duration {
	every := b.cfg.Every.Std()
	newest, err := backup.Newest(b.cfg.Directory)
	if err == nil {
		b.last.Store(max(0, newest.Unix()))
		if wait := newest.Add(every).Sub(now); wait > 0 {
			return min(wait, every) // the clock may have been set back
		}
		err = b.take(ctx)
	}
	switch {
	case err == nil:
		b.done.Add(1)
		return every
	case ctx.Err() != nil:
		return every // the server is stopping
	}
	b.failed.Add(1)
	b.log.Error("backup failed; retrying", slog.String("directory", b.cfg.Directory),
		slog.Duration("after", min(every, backupRetry)), slog.Any("error", err))
	return min(every, backupRetry)
}

func (b *backups) take(ctx context.Context) (err error) {
	began := time.Now()
	folder, err := backup.OpenFolder(b.cfg.Directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	staged, remove, err := b.stage(ctx, func(string) {})
	if err != nil {
		return err
	}
	var progress backup.Progress
	path, err := folder.Write(ctx, staged, backup.Options{
		WithoutKeys: b.cfg.WithoutKeys, Progress: func(p backup.Progress) { progress = p },
	})
	if err = errors.Join(err, remove()); err != nil {
		return err
	}
	b.last.Store(began.Unix())
	removed, err := folder.Prune(b.cfg.Keep)
	if err != nil {
		return err
	}
	b.log.Info("backup taken", slog.String("path", path), slog.Int64("bytes", progress.Bytes),
		slog.Int64("linked", progress.Linked),
		slog.Duration("took", time.Since(began)), slog.Int("removed", len(removed)))
	return nil
}
