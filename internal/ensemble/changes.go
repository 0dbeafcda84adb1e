package ensemble

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/membership"
)

// A change of accounts, keys, bindings or sessions is in force on every member when its call
// returns (docs/spec/ensemble.md): the member that stored it notifies the others, and waits for
// each of them, or for the expiry of its lease.

const (
	changesPath = "/v1/changes"
	// maxChange is larger than any object.
	maxChange = 8 << 20
)

// changeReceiver is the state for sending and receiving changes.
type changeReceiver struct {
	// apply is set when this member starts to read stored resources. Before that it can
	// ignore changes, because it reads them later.
	apply  atomic.Pointer[func(ctx context.Context, change []byte) error]
	loaded chan struct{} // closed when all stored resources are loaded
	ctx    context.Context
	cancel context.CancelFunc
}

func newChangeReceiver() changeReceiver {
	ctx, cancel := context.WithCancel(context.Background())
	return changeReceiver{loaded: make(chan struct{}), ctx: ctx, cancel: cancel}
}

// loadedState is the state of a member that catches up when all stored resources are loaded.
type loadedState struct {
	state  membership.State
	loaded <-chan struct{} // closed when all stored resources are loaded
}

// CatchUp implements membership.State.
func (s *loadedState) CatchUp(ctx context.Context) error {
	select {
	case <-s.loaded:
		return s.state.CatchUp(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Confirm sends a change, encoded as JSON, to all other members. It returns when every member
// has applied the change, or has lost its lease.
func (m *Member) Confirm(change any) {
	err := m.membership.Load().Confirm(m.changes.ctx,
		func(ctx context.Context, member membership.Record) error {
			return m.network.Post(ctx, member.Name, changesPath, change, nil)
		})
	if err != nil {
		m.opts.Log.Error("server stopped before every member had applied a change", slog.Any("error", err))
	}
}

// StopConfirming aborts the calls of Confirm. They have no clients any more at this point of
// the shutdown. If other members have stopped before, so that no majority is left, they would
// wait forever.
func (m *Member) StopConfirming() { m.changes.cancel() }

// Receive sets the function that applies the changes of other members. It is called when this
// member starts to read stored resources.
func (m *Member) Receive(apply func(ctx context.Context, change []byte) error) {
	m.changes.apply.Store(&apply)
}

// FinishLoading records that all stored resources are loaded, so that this member can catch up
// after it has lost its lease. It is called once.
func (m *Member) FinishLoading() { close(m.changes.loaded) }

// serveChanges handles the changes of other members.
func (m *Member) serveChanges(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChange))
	if err != nil {
		err = errs.Newf(errs.Invalid, "reading the change: %w", err)
	} else if apply := m.changes.apply.Load(); apply != nil {
		err = (*apply)(r.Context(), body)
	}
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	switch errs.KindOf(err) {
	case errs.Invalid:
		status = http.StatusBadRequest
	case errs.Unavailable:
		status = http.StatusServiceUnavailable
	}
	http.Error(w, err.Error(), status)
}
