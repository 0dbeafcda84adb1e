package backup

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestScheduledBackups checks the schedule over several days.
func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	const every = 24 * time.Hour
	dir, now := t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var fails error
	staging := 0
	b := NewSchedule(ScheduleOptions{
		Directory: filepath.Join(dir, "backups"), Every: every, Keep: 2,
		Log: slog.New(slog.DiscardHandler),
		Stage: func(context.Context, func(string)) (string, func() error, error) {
			if fails != nil {
				return "", nil, fails
			}
			staging++
			staged := filepath.Join(dir, "staged")
			m := &Manifest{Version: 1, Created: now}
			err := errors.Join(os.Mkdir(staged, 0o700), m.WriteTo(staged))
			return staged, func() error { staging--; return os.RemoveAll(staged) }, err
		},
	})
	expect := func(what string, wait time.Duration, names int) {
		t.Helper()
		if got := b.takeIfDue(t.Context(), now); got != wait {
			t.Errorf("%s: next call in %s, want %s", what, got, wait)
		}
		if got, err := List(b.opts.Directory); err != nil || len(got) != names {
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
	for _, schedule := range []*Schedule{b, NewSchedule(ScheduleOptions{})} {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(schedule)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if want := schedule == b; (len(families) == 2) != want || !want && len(families) > 0 {
			t.Errorf("got metrics %v, want some only with a directory", families)
		}
	}
}
