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
)

// TestScheduledBackups goes through the turns of a week.
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
		if got := b.turn(t.Context(), now); got != wait {
			t.Errorf("%s: waits %s, want %s", what, got, wait)
		}
		if got, err := backup.List(b.cfg.Directory); err != nil || len(got) != names {
			t.Errorf("%s: got %v, %v, want %d backups", what, got, err, names)
		}
		if staging != 0 {
			t.Errorf("%s: the staged copy was not removed", what)
		}
	}
	expect("the first is due at once", every, 1)
	now = now.Add(time.Hour)
	expect("a restart in between", every-time.Hour, 1)
	now = now.Add(every)
	expect("the second", every, 2)
	now = now.Add(every)
	expect("the third, and the first goes", every, 2)
	now, fails = now.Add(every), errors.New("the disk is full")
	expect("a failure is tried again soon", backupRetry, 2)
	fails = nil
	expect("and made up for", every, 2)
	now = now.Add(-10 * every)
	expect("a clock that was set back", every, 2)
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
			t.Errorf("a second backup: got %v, want %v", err, errStaging)
		}
		time.AfterFunc(stagingWait/2, s.staging.Unlock)
		if !s.awaitStaging(t.Context()) {
			t.Error("a backup while the copy of the last one is removed: got a refusal, want it to wait")
		}
	})
}

// TestRestoreThatWasCutShort finds what an earlier run left: no server starts on
// it, and the next run begins anew.
func TestRestoreThatWasCutShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{restoringDir, "etcd"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := &server{cfg: &config.Config{DataDir: dir}, room: openRoom(dir)}
	if err := s.openDirectory(t.Context()); err == nil {
		t.Error("a server starts on half a data directory, want an error")
	}
	if err := errors.Join(s.room.close(), s.lock.release()); err != nil {
		t.Fatal(err)
	}
	r := &restoring{backup.RestoreOptions{DataDir: dir}}
	if err := errors.Join(r.checkEmpty(), r.clear()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "etcd"), 0o700); err != nil {
		t.Fatalf("what the earlier run left is still there: %v", err)
	}
	if err := r.checkEmpty(); err == nil {
		t.Error("a directory with data is taken for an empty one")
	}
}
