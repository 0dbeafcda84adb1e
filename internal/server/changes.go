package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"

	"freshet/internal/base/errs"
	"freshet/internal/controlplane/kinds"
	"freshet/internal/ensemble/membership"
	"freshet/internal/identity"
)

// A change of accounts, keys, bindings or sessions is in force on every member when its call
// returns (docs/spec/ensemble.md): the member that stored it notifies the others, and waits for
// each of them, or for the expiry of its lease.

const (
	changesPath = "/v1/changes"
	// maxChange is larger than any object.
	maxChange = 8 << 20
)

// change is a notification to the other members: a write of a kind, the end of a session, or
// a change of the signing keys.
type change struct {
	Stored      *kinds.Change `json:"stored,omitempty"`
	Ended       *endedSignIn  `json:"ended,omitempty"`
	SigningKeys bool          `json:"signingKeys,omitempty"`
}

type endedSignIn struct {
	Key      string `json:"key"`
	Revision int64  `json:"revision"`
}

// changeReceiver is the state for receiving changes from other members.
type changeReceiver struct {
	// reading is set when this member starts to read stored resources. Before that it can
	// ignore changes, because it reads them later.
	reading atomic.Bool
	loaded  chan struct{} // closed when all stored resources are loaded
	ctx     context.Context
	cancel  context.CancelFunc
}

func newChangeReceiver() changeReceiver {
	ctx, cancel := context.WithCancel(context.Background())
	return changeReceiver{loaded: make(chan struct{}), ctx: ctx, cancel: cancel}
}

// confirmOnMembers returns when every member has applied a change, or has lost its lease.
func (s *server) confirmOnMembers(c change) {
	err := s.ensemble.members.Confirm(s.ensemble.changes.ctx,
		func(ctx context.Context, member membership.Record) error {
			return s.ensemble.network.Post(ctx, member.Name, changesPath, c, nil)
		})
	if err != nil {
		s.log.Error("server stopped before every member had applied a change", slog.Any("error", err))
	}
}

// stopConfirming aborts the calls of confirm. They have no clients any more at this point of
// the shutdown. If other members have stopped before, so that no majority is left, they would
// wait forever.
func (s *server) stopConfirming() {
	if s.ensemble != nil {
		s.ensemble.changes.cancel()
	}
}

// notifyStored returns a function that notifies the other members of a write, or nil for a single
// server.
func (s *server) notifyStored() func(kinds.Change) {
	if s.ensemble == nil {
		return nil
	}
	return func(c kinds.Change) { s.confirmOnMembers(change{Stored: &c}) }
}

// notifyEndedSignIns returns a function that notifies the other members of ended sessions, or nil
// for a single server.
func (s *server) notifyEndedSignIns() func(key string, revision int64) {
	if s.ensemble == nil {
		return nil
	}
	return func(key string, revision int64) { s.confirmOnMembers(change{Ended: &endedSignIn{key, revision}}) }
}

// withdrawer returns the Withdrawer of the signing keys that the operator lists in a file.
func (s *server) withdrawer() *identity.Withdrawer {
	return &identity.Withdrawer{
		Keys: s.identity.keys, File: s.cfg.WithdrawnKeysFile(), Shared: s.cfg.Etcd.External() || s.ensemble != nil,
		Notify: func() {
			if s.ensemble != nil {
				s.confirmOnMembers(change{SigningKeys: true})
			}
		},
		Log: s.log,
	}
}

// serveChanges handles the changes of other members.
func (s *server) serveChanges(w http.ResponseWriter, r *http.Request) {
	if err := s.applyChange(w, r); err != nil {
		status := http.StatusInternalServerError
		switch errs.KindOf(err) {
		case errs.Invalid:
			status = http.StatusBadRequest
		case errs.Unavailable:
			status = http.StatusServiceUnavailable
		}
		http.Error(w, err.Error(), status)
	}
}

func (s *server) applyChange(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChange))
	if err != nil {
		return errs.Newf(errs.Invalid, "reading the change: %w", err)
	}
	var c change
	if err := json.Unmarshal(body, &c); err != nil {
		return errs.Newf(errs.Invalid, "reading the change: %w", err)
	}
	if !s.ensemble.changes.reading.Load() {
		return nil
	}
	switch {
	case c.Stored != nil:
		return s.kinds.Apply(*c.Stored)
	case c.Ended != nil:
		s.signIn.ApplyEnd(c.Ended.Key, c.Ended.Revision)
	case c.SigningKeys:
		return s.identity.keys.Refresh(r.Context())
	}
	return nil
}

// catchUp applies the changes that were stored while this member had no lease.
func (s *server) catchUp(ctx context.Context) error {
	select {
	case <-s.ensemble.changes.loaded:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.loops.CatchUp(ctx); err != nil {
		return err
	}
	if err := s.signIn.Reload(ctx); err != nil {
		return err
	}
	return s.identity.keys.Refresh(ctx)
}

// startReceivingChanges records that this member starts to read stored resources.
func (s *server) startReceivingChanges() {
	if s.ensemble != nil {
		s.ensemble.changes.reading.Store(true)
	}
}

// finishLoading records that all stored resources are loaded.
func (s *server) finishLoading(ctx context.Context) error {
	if s.ensemble == nil {
		return nil
	}
	if err := s.identity.keys.Refresh(ctx); err != nil { // they were read before changeReceiver.reading was set
		return err
	}
	close(s.ensemble.changes.loaded)
	return nil
}
