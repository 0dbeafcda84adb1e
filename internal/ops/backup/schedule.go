package backup

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"freshet/internal/base/retry"
)

// ScheduleOptions are the settings of scheduled backups.
type ScheduleOptions struct {
	Directory   string        // of the backups; "" for no scheduled backups
	Every       time.Duration // interval between two backups
	Keep        int           // how many backups to keep
	WithoutKeys bool
	Stager      Stager
	Log         *slog.Logger
}

// Stager makes consistent copies of all data of the server.
type Stager interface {
	// Stage makes a copy. It returns the folder of the copy and a function to remove it.
	Stage(ctx context.Context, progress func(string)) (dir string, remove func() error, err error)
}

// Schedule takes scheduled backups and counts them.
type Schedule struct {
	opts ScheduleOptions

	done, failed atomic.Int64
	last         atomic.Int64 // start of the newest backup in Unix seconds
}

// NewSchedule returns a schedule. Run starts it.
func NewSchedule(opts ScheduleOptions) *Schedule { return &Schedule{opts: opts} }

// backupRetry is the backoff after a failed backup.
const backupRetry = 5 * time.Minute

// Run takes a backup whenever the newest one in the folder is old enough, until the context
// is canceled. A backup that was due while the server was stopped is taken at the start.
func (b *Schedule) Run(ctx context.Context) {
	if b.opts.Directory == "" {
		return
	}
	for untilDue := time.Duration(0); retry.Sleep(ctx, untilDue) == nil; {
		untilDue = b.takeIfDue(ctx, time.Now())
	}
}

// takeIfDue takes a backup if one is due, and returns the time until the next call.
func (b *Schedule) takeIfDue(ctx context.Context, now time.Time) time.Duration {
	every := b.opts.Every
	newest, err := Newest(b.opts.Directory)
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
	b.opts.Log.Error("backup failed; retrying", slog.String("directory", b.opts.Directory),
		slog.Duration("after", min(every, backupRetry)), slog.Any("error", err))
	return min(every, backupRetry)
}

func (b *Schedule) take(ctx context.Context) (err error) {
	began := time.Now()
	folder, err := OpenFolder(b.opts.Directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	staged, remove, err := b.opts.Stager.Stage(ctx, func(string) {})
	if err != nil {
		return err
	}
	var progress Progress
	path, err := folder.Write(ctx, staged, Options{
		WithoutKeys: b.opts.WithoutKeys, Progress: func(p Progress) { progress = p },
	})
	if err = errors.Join(err, remove()); err != nil {
		return err
	}
	b.last.Store(began.Unix())
	removed, err := folder.Prune(b.opts.Keep)
	if err != nil {
		return err
	}
	b.opts.Log.Info("backup taken", slog.String("path", path), slog.Int64("bytes", progress.Bytes),
		slog.Int64("linked", progress.Linked),
		slog.Duration("took", time.Since(began)), slog.Int("removed", len(removed)))
	return nil
}
