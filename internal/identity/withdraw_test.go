package identity_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
)

// TestWithdrawer checks that the keys in the file are withdrawn once, that the other replicas are
// notified, and that the file is removed.
func TestWithdrawer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text      string
		withdrawn bool
		remains   bool
	}{
		"all":         {"all\n", true, false},
		"unknown key": {"nonsense", false, false},
		"too large":   {strings.Repeat("x", 1<<20+1), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys, err := identity.OpenKeyring(t.Context(), &identitytest.Store{}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			before := keys.IDs()
			notified := &notifications{}
			w := &identity.Withdrawer{
				Keys: keys, File: filepath.Join(t.TempDir(), "withdrawn"), Replicas: notified,
				Log: slog.New(slog.DiscardHandler),
			}
			if err := w.Withdraw(t.Context()); err != nil {
				t.Fatalf("without a file: %v", err)
			}
			if err := os.WriteFile(w.File, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := w.Withdraw(t.Context()); (err != nil) != c.remains {
				t.Errorf("got error %v, want one: %t", err, c.remains)
			}
			if keys.Contains(before[0]) == c.withdrawn || (notified.withdrawn == 1) != c.withdrawn {
				t.Errorf("withdrawn %t and notified %d times, want %t", !keys.Contains(before[0]), notified.withdrawn,
					c.withdrawn)
			}
			if _, err := os.Stat(w.File); errors.Is(err, fs.ErrNotExist) == c.remains {
				t.Errorf("file: got %v, want that it remains: %t", err, c.remains)
			}
		})
	}
}

// notifications counts the calls of NotifyWithdrawn.
type notifications struct{ withdrawn int }

// NotifyWithdrawn implements identity.Replicas.
func (n *notifications) NotifyWithdrawn() { n.withdrawn++ }
