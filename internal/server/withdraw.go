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

// withdrawer ends signing keys at the operator's word.
type withdrawer struct {
	keys   *identity.Keyring
	file   string
	shared bool   // with other replicas, which withdraw keys too
	tell   func() // has the other members hear of it; nil when there are none
	log    *slog.Logger
}

func (s *server) withdrawer() *withdrawer {
	w := &withdrawer{keys: s.identity.keys, file: s.cfg.WithdrawnKeysFile(), shared: s.cfg.Etcd.External() ||
		s.group != nil, log: s.log}
	if s.group != nil {
		w.tell = func() { s.confirm(change{SigningKeys: true}) }
	}
	return w
}

// run looks for the file, and for what other replicas have withdrawn, until ctx
// ends.
func (w *withdrawer) run(ctx context.Context) {
	tick := time.NewTicker(withdrawEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := w.obey(ctx)
		if err == nil && w.shared {
			err = w.keys.Refresh(ctx)
		}
		if err != nil && ctx.Err() == nil {
			w.log.Error("signing keys could not be withdrawn; trying again", slog.String("error", err.Error()))
		}
	}
}

// obey withdraws what the file names. A key that is not there any more is as good
// as withdrawn.
func (w *withdrawer) obey(ctx context.Context) error {
	info, err := os.Stat(w.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() > maxWithdraw {
		return fmt.Errorf("%s has %d bytes: it takes ids of signing keys, one in a line, in at most %d", w.file,
			info.Size(), maxWithdraw)
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
		case w.keys.Knows(id):
			known = append(known, id)
		default:
			w.log.Warn("there is no such signing key to withdraw", slog.String("key", id))
		}
	}
	if len(known) > 0 {
		if err := w.keys.Withdraw(ctx, known...); err != nil && !errors.Is(err, identity.ErrSigningKeyUnknown) {
			return err
		}
		if w.tell != nil {
			w.tell()
		}
		w.log.Warn("signing keys were withdrawn: every token that they have signed is refused", slog.Any("keys", known))
	}
	return os.Remove(w.file)
}
