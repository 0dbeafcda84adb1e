package staging

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/config"
)

func TestOneBackupAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Config: &config.Config{DataDir: dir}})
		s.busy.Lock()
		if _, _, err := s.Stage(t.Context(), func(string) {}); !errors.Is(err, errBusy) {
			t.Errorf("second backup: got %v, want %v", err, errBusy)
		}
		time.AfterFunc(stagingTimeout/2, s.busy.Unlock)
		if !s.await(t.Context()) {
			t.Error("await does not wait until the copy of the last backup is removed")
		}
	})
}
