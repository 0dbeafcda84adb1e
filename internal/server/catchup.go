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
)

// A change of who may call is in force on every member when the call that made it
// returns (docs/spec/group.md): the member that stored it tells the others, here, and
// waits for each of them or for the end of its lease.

const (
	changesPath = "/v1/changes"
	// maxChange is more than an object can have.
	maxChange = 8 << 20
)

// change is what one member tells the others: a write of a kind, the end of a session,
// or that there are other signing keys.
type change struct {
	Stored      *kinds.Change `json:"stored,omitempty"`
	Ended       *endedSignIn  `json:"ended,omitempty"`
	SigningKeys bool          `json:"signingKeys,omitempty"`
}

type endedSignIn struct {
	Key      string `json:"key"`
	Revision int64  `json:"revision"`
}

// hearing is the part of a member that hears of changes.
type hearing struct {
	// reading says that stored resources are being read, or have been. Before that
	// nothing can be missed: what was stored is read later.
	reading atomic.Bool
	loaded  chan struct{} // closed when everything that is stored is in force
	ctx     context.Context
	cancel  context.CancelFunc
}

func newHearing() hearing {
	ctx, cancel := context.WithCancel(context.Background())
	return hearing{loaded: make(chan struct{}), ctx: ctx, cancel: cancel}
}

// confirm returns when every member has heard of a change, or cannot answer anybody.
func (s *server) confirm(c change) {
	err := s.group.members.Confirm(s.group.hearing.ctx, func(ctx context.Context, member membership.Record) error {
		return s.group.network.Post(ctx, member.Name, changesPath, c, nil)
	})
	if err != nil {
		s.log.Error("the server stopped before every member had heard of a change", slog.String("error", err.Error()))
	}
}

// stopConfirming ends what waits for other members to hear of a change. Nobody is left
// who could be told that it is in force; with members that have gone before, and no
// majority without them, it would wait for ever.
func (s *server) stopConfirming() {
	if s.group != nil {
		s.group.hearing.cancel()
	}
}

// stored tells the other members of a write; nil for a server that is alone.
func (s *server) stored() func(kinds.Change) {
	if s.group == nil {
		return nil
	}
	return func(c kinds.Change) { s.confirm(change{Stored: &c}) }
}

// endedSignIns tells the other members of ended sessions; nil for a server that is
// alone.
func (s *server) endedSignIns() func(key string, revision int64) {
	if s.group == nil {
		return nil
	}
	return func(key string, revision int64) { s.confirm(change{Ended: &endedSignIn{key, revision}}) }
}

// hearChanges is what the other members call.
func (s *server) hearChanges(w http.ResponseWriter, r *http.Request) {
	if err := s.hearChange(w, r); err != nil {
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

func (s *server) hearChange(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChange))
	if err != nil {
		return errs.Newf(errs.Invalid, "reading the change: %w", err)
	}
	var c change
	if err := json.Unmarshal(body, &c); err != nil {
		return errs.Newf(errs.Invalid, "reading the change: %w", err)
	}
	if !s.group.hearing.reading.Load() {
		return nil
	}
	switch {
	case c.Stored != nil:
		return s.kinds.Apply(*c.Stored)
	case c.Ended != nil:
		s.people.HearEnd(c.Ended.Key, c.Ended.Revision)
	case c.SigningKeys:
		return s.identity.keys.Refresh(r.Context())
	}
	return nil
}

// catchUp brings into force what has changed while this member was without a lease.
func (s *server) catchUp(ctx context.Context) error {
	select {
	case <-s.group.hearing.loaded:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.loops.CatchUp(ctx); err != nil {
		return err
	}
	if err := s.people.Reload(ctx); err != nil {
		return err
	}
	return s.identity.keys.Refresh(ctx)
}

// read says that from now on stored resources are read.
func (s *server) read() {
	if s.group != nil {
		s.group.hearing.reading.Store(true)
	}
}

// loaded says that everything is in force that is stored.
func (s *server) loaded(ctx context.Context) error {
	if s.group == nil {
		return nil
	}
	if err := s.identity.keys.Refresh(ctx); err != nil { // they were read first of all
		return err
	}
	close(s.group.hearing.loaded)
	return nil
}
