package ensemble_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"freshet/internal/ensemble"
	"freshet/internal/ensemble/membership"
	"freshet/internal/storage/engine"
)

// servers are the methods that Single and Member have in common. Callers declare parts of it.
type servers interface {
	Self() string
	Names() []string
	Live() []membership.Record
	Alive() bool
	SetReady(ctx context.Context, ready bool)
	Retire()
	Leave()
	StopTime() time.Duration
	Shutdown(ctx context.Context)
	Confirm(change any)
	StopConfirming()
	Lead(ctx context.Context, work func(context.Context) error) error
	StopLeading(ctx context.Context) <-chan struct{}
	Sender(owner engine.Owner) func(w http.ResponseWriter, r *http.Request) error
	Post(ctx context.Context, member, path string, in, out any) error
	Status(ctx context.Context) (*ensemble.Status, error)
	Replace(ctx context.Context, name string) error
	StepDown(ctx context.Context, name string) (*ensemble.SteppedDown, error)
}

var (
	_ servers = ensemble.Single{}
	_ servers = (*ensemble.Member)(nil)
)

// TestSingle checks that a single server is alive, leads, confirms at once and serves everything
// itself.
func TestSingle(t *testing.T) {
	t.Parallel()
	var s ensemble.Single
	if !s.Alive() || s.Self() != "" || s.Names() != nil || s.Live() != nil || s.StopTime() != 0 {
		t.Errorf("got alive %t, self %q, names %v, live %v, stop time %s; want an alive server without members",
			s.Alive(), s.Self(), s.Names(), s.Live(), s.StopTime())
	}
	for _, owner := range []engine.Owner{{}, {Member: "b", Epoch: 1}} {
		if s.Sender(owner) != nil {
			t.Errorf("owner %+v: got a sender, want nil", owner)
		}
	}
	s.Confirm(struct{}{}) // returns at once
	failure := errors.New("no")
	led := 0
	if err := s.Lead(t.Context(), func(context.Context) error { led++; return failure }); led != 1 ||
		!errors.Is(err, failure) {
		t.Errorf("lead: got %d calls and error %v, want one call and its error", led, err)
	}
	<-s.StopLeading(t.Context())
	status, err := s.Status(t.Context())
	if err != nil || status.Self != "" || len(status.Members) > 0 {
		t.Errorf("status: got %+v, %v; want no members", status, err)
	}
	_, stepDown := s.StepDown(t.Context(), "a")
	for name, err := range map[string]error{
		"replace": s.Replace(t.Context(), "a"), "step down": stepDown,
		"post": s.Post(t.Context(), "a", "/x", nil, nil),
	} {
		if !errors.Is(err, ensemble.ErrSingle) {
			t.Errorf("%s: got error %v, want %v", name, err, ensemble.ErrSingle)
		}
	}
}
