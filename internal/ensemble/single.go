package ensemble

import (
	"context"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/forwarding"
	"freshet/internal/ensemble/membership"
	"freshet/internal/storage/engine"
)

// ErrSingle is returned on a single server by calls that need other members.
var ErrSingle = errs.New(errs.NotFound,
	"this server is not part of an ensemble; its configuration has no members")

// Single is a server that runs alone. It is always alive, leads, and serves every request itself.
type Single struct{}

// Self returns "", because a single server has no name.
func (Single) Self() string { return "" }

// Names returns no members.
func (Single) Names() []string { return nil }

// Live returns no members.
func (Single) Live() []membership.Record { return nil }

// Alive returns true: a single server needs no lease.
func (Single) Alive() bool { return true }

// Now returns the time of this machine.
func (Single) Now() time.Time { return time.Now() }

// SetReady does nothing: no other server needs to know.
func (Single) SetReady(context.Context, bool) {}

// Retire does nothing: there is no lease.
func (Single) Retire() {}

// Leave does nothing: there is no lease.
func (Single) Leave() {}

// StopTime returns 0: no shards have to be handed over.
func (Single) StopTime() time.Duration { return 0 }

// Shutdown does nothing: no other server calls this one.
func (Single) Shutdown(context.Context) {}

// Confirm does nothing: the change is already applied on every server.
func (Single) Confirm(any) {}

// StopConfirming does nothing.
func (Single) StopConfirming() {}

// Lead runs work until it returns, because a single server always leads.
func (Single) Lead(ctx context.Context, work func(context.Context) error) error { return work(ctx) }

// StopLeading returns a closed channel: no other server takes over.
func (Single) StopLeading(context.Context) <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// Sender returns nil: this server serves the request.
func (Single) Sender(engine.Owner) forwarding.Sender { return nil }

// Post returns ErrSingle.
func (Single) Post(context.Context, string, string, any, any) error { return ErrSingle }

// Status describes an ensemble without members.
func (Single) Status(context.Context) (*Status, error) { return &Status{}, nil }

// Replace returns ErrSingle.
func (Single) Replace(context.Context, string) error { return ErrSingle }

// StepDown returns ErrSingle.
func (Single) StepDown(context.Context, string) (*SteppedDown, error) { return nil, ErrSingle }
