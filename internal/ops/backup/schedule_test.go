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

// fakeStager makes copies that contain only a manifest.
type fakeStager struct {
	dir    string
	now    time.Time // of the next copy
	fails  error     // of Stage
	staged int       // number of copies that exist
}

// Stage implements Stager.
func (s *fakeStager) Stage(context.Context, func(string)) (dir string, remove func() error, err error) {
	if s.fails != nil {
		return "", nil, s.fails
	}
	s.staged++
	m := &Manifest{Version: 1, Created: s.now}
	err = errors.Join(os.Mkdir(s.dir, 0o700), m.WriteTo(s.dir))
	return s.dir, func() error { s.staged--; return os.RemoveAll(s.dir) }, err
}

// TestScheduledBackups checks the schedule over several days.
func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	const every = 24 * time.Hour
	dir := t.TempDir()
	stager := &fakeStager{dir: filepath.Join(dir, "staged"), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	b := NewSchedule(ScheduleOptions{
		Directory: filepath.Join(dir, "backups"), Every: every, Keep: 2,
		Log: slog.New(slog.DiscardHandler), Stager: stager,
	})
	expect := func(what string, wait time.Duration, names int) {
		t.Helper()
		if got := b.takeIfDue(t.Context(), stager.now); got != wait {
			t.Errorf("%s: next call in %s, want %s", what, got, wait)
		}
		if got, err := List(b.opts.Directory); err != nil || len(got) != names {
			t.Errorf("%s: got %v, %v, want %d backups", what, got, err, names)
		}
		if stager.staged != 0 {
			t.Errorf("%s: staged copy was not removed", what)
		}
	}
	expect("first backup", every, 1)
	stager.now = stager.now.Add(time.Hour)
	expect("restart before the next one is due", every-time.Hour, 1)
	stager.now = stager.now.Add(every)
	expect("second backup", every, 2)
	stager.now = stager.now.Add(every)
	expect("third backup, which removes the first", every, 2)
	stager.now, stager.fails = stager.now.Add(every), errors.New("disk is full")
	expect("failed backup", backupRetry, 2)
	stager.fails = nil
	expect("retry", every, 2)
	stager.now = stager.now.Add(-10 * every)
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
