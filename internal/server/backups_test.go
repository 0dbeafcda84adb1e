package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/config"
	"freshet/internal/ops/backup"
	"freshet/internal/ops/disk"
)

// TestScheduledBackups checks the schedule over several days.
func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	const every = 24 * time.Hour
	dir, now := t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var fails error
	staging := 0
	b := &backups{
		cfg: config.Backup{Directory: filepath.Join(dir, "backups"), Every: config.Duration(every), Keep: 2},
		log: slog.New(slog.DiscardHandler),
		stage: func(context.Context, func(string)) (string, func() error, error) {
			if fails != nil {
				return "", nil, fails
			}
			staging++
			staged := filepath.Join(dir, "staged")
			m := &backup.Manifest{Version: 1, Created: now}
			err := errors.Join(os.Mkdir(staged, 0o700), m.WriteTo(staged))
			return staged, func() error { staging--; return os.RemoveAll(staged) }, err
		},
	}
	expect := func(what string, wait time.Duration, names int) {
		t.Helper()
		if got := b.takeIfDue(t.Context(), now); got != wait {
			t.Errorf("%s: next call in %s, want %s", what, got, wait)
		}
		if got, err := backup.List(b.cfg.Directory); err != nil || len(got) != names {
			t.Errorf("%s: got %v, %v, want %d backups", what, got, err, names)
		}
		if staging != 0 {
			t.Errorf("%s: staged copy was not removed", what)
		}
	}
	expect("first backup", every, 1)
	now = now.Add(time.Hour)
	expect("restart before the next one is due", every-time.Hour, 1)
	now = now.Add(every)
	expect("second backup", every, 2)
	now = now.Add(every)
	expect("third backup, which removes the first", every, 2)
	now, fails = now.Add(every), errors.New("disk is full")
	expect("failed backup", backupRetry, 2)
	fails = nil
	expect("retry", every, 2)
	now = now.Add(-10 * every)
	expect("clock set back", every, 2)
	if done, failed := b.done.Load(), b.failed.Load(); done != 4 || failed != 1 {
		t.Errorf("got %d done and %d failed, want 4 and 1", done, failed)
	}
}

func TestOneBackupAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &server{cfg: &config.Config{DataDir: dir}}
		s.staging.Lock()
		if _, _, err := s.stage(t.Context(), func(string) {}); !errors.Is(err, errStaging) {
			t.Errorf("second backup: got %v, want %v", err, errStaging)
		}
		time.AfterFunc(stagingTimeout/2, s.staging.Unlock)
		if !s.awaitStaging(t.Context()) {
			t.Error("awaitStaging does not wait until the copy of the last backup is removed")
		}
	})
}

// TestInterruptedRestore checks that no server starts on an unfinished restore, and that
// the next restore starts again.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{restoringDir, "etcd"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := &server{cfg: &config.Config{DataDir: dir}, reserve: disk.OpenReserve(dir, 0)}
	if err := s.openDirectory(t.Context()); err == nil {
		t.Error("server starts on an unfinished restore, want an error")
	}
	if err := errors.Join(s.reserve.Close(), s.lock.Release()); err != nil {
		t.Fatal(err)
	}
	r := &restoration{backup.RestoreOptions{DataDir: dir}}
	if err := errors.Join(r.checkEmpty(), r.clear()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "etcd"), 0o700); err != nil {
		t.Fatalf("files of the earlier run still exist: %v", err)
	}
	if err := r.checkEmpty(); err == nil {
		t.Error("checkEmpty accepts a directory with data")
	}
}
