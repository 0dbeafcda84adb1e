package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"freshet/internal/base/retry"
)

const (
	withdrawEvery = time.Second
	withdrawAll   = "all"
	maxWithdraw   = 1 << 20
)

// Withdrawer withdraws the signing keys that the operator lists in a file.
type Withdrawer struct {
	Keys     *Keyring
	File     string
	Shared   bool // other replicas share the keys and may withdraw them
	Replicas Replicas
	Log      *slog.Logger
}

// Replicas are the other processes that verify tokens with the same keys.
type Replicas interface {
	// NotifyWithdrawn returns when the other replicas have applied a withdrawal.
	NotifyWithdrawn()
}

// Run checks for the file, and for keys that other replicas have withdrawn, until ctx is
// canceled.
func (w *Withdrawer) Run(ctx context.Context) {
	for range retry.Every(ctx, withdrawEvery) {
		err := w.Withdraw(ctx)
		if err == nil && w.Shared {
			err = w.Keys.Refresh(ctx)
		}
		if err != nil && ctx.Err() == nil {
			w.Log.Error("signing keys could not be withdrawn; retrying", slog.Any("error", err))
		}
	}
}

// Withdraw withdraws the keys in the file and removes the file. It ignores keys that do not
// exist any more.
func (w *Withdrawer) Withdraw(ctx context.Context) error {
	info, err := os.Stat(w.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() > maxWithdraw {
		return fmt.Errorf("%s has %d bytes, but at most %d are allowed; write one id of a signing key per line",
			w.File, info.Size(), maxWithdraw)
	}
	text, err := os.ReadFile(w.File)
	if err != nil {
		return err
	}
	var known []string
	for _, id := range strings.Fields(string(text)) {
		switch {
		case id == withdrawAll:
			known = append(known, w.Keys.IDs()...)
		case w.Keys.Contains(id):
			known = append(known, id)
		default:
			w.Log.Warn("signing key to withdraw does not exist", slog.String("key", id))
		}
	}
	if len(known) > 0 {
		if err := w.Keys.Withdraw(ctx, known...); err != nil && !errors.Is(err, ErrSigningKeyUnknown) {
			return err
		}
		w.Replicas.NotifyWithdrawn()
		w.Log.Warn("signing keys were withdrawn; all tokens that they signed are rejected", slog.Any("keys", known))
	}
	return os.Remove(w.File)
}
