package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"freshet/internal/identity"
)

const (
	withdrawEvery = time.Second
	withdrawAll   = "all"
	maxWithdraw   = 1 << 20
)

// withdrawer withdraws the signing keys that the operator lists in a file.
type withdrawer struct {
	keys   *identity.Keyring
	file   string
	shared bool   // other replicas share the keys and may withdraw them
	notify func() // notifies the other members; nil for a single server
	log    *slog.Logger
}

func (s *server) withdrawer() *withdrawer {
	w := &withdrawer{keys: s.identity.keys, file: s.cfg.WithdrawnKeysFile(), shared: s.cfg.Etcd.External() ||
		s.ensemble != nil, log: s.log}
	if s.ensemble != nil {
		w.notify = func() { s.confirmOnMembers(change{SigningKeys: true}) }
	}
	return w
}

// run checks for the file, and for keys that other replicas have withdrawn, until ctx is
// canceled.
func (w *withdrawer) run(ctx context.Context) {
	tick := time.NewTicker(withdrawEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := w.withdraw(ctx)
		if err == nil && w.shared {
			err = w.keys.Refresh(ctx)
		}
		if err != nil && ctx.Err() == nil {
			w.log.Error("signing keys could not be withdrawn; retrying", slog.Any("error", err))
		}
	}
}

// withdraw withdraws the keys in the file and removes the file. It ignores keys that do not
// exist any more.
func (w *withdrawer) withdraw(ctx context.Context) error {
	info, err := os.Stat(w.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() > maxWithdraw {
		return fmt.Errorf("%s has %d bytes, but at most %d are allowed; write one id of a signing key per line",
			w.file, info.Size(), maxWithdraw)
	}
	text, err := os.ReadFile(w.file)
	if err != nil {
		return err
	}
	var known []string
	for _, id := range strings.Fields(string(text)) {
		switch {
		case id == withdrawAll:
			known = append(known, w.keys.IDs()...)
		case w.keys.Contains(id):
			known = append(known, id)
		default:
			w.log.Warn("signing key to withdraw does not exist", slog.String("key", id))
		}
	}
	if len(known) > 0 {
		if err := w.keys.Withdraw(ctx, known...); err != nil && !errors.Is(err, identity.ErrSigningKeyUnknown) {
			return err
		}
		if w.notify != nil {
			w.notify()
		}
		w.log.Warn("signing keys were withdrawn; all tokens that they signed are rejected", slog.Any("keys", known))
	}
	return os.Remove(w.file)
}
