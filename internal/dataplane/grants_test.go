package dataplane_test

import (
	"errors"
	"testing"

	"freshet/internal/base/errs"
)

// TestClusterGrantsOfAStartingServer checks that grants are unknown until the server is ready.
func TestClusterGrantsOfAStartingServer(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir())
	running(t, p, spec("acme", "prod"))
	ready := errors.New("starting")
	grants := p.ClusterGrants(func() error { return ready })
	if _, err := grants.GrantsOf("acme", "ci"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("starting server: got %v, want an error of kind unavailable", err)
	}
	ready = nil
	if got, err := grants.GrantsOf("acme", "ci"); err != nil || len(got) != 0 {
		t.Errorf("ready server: got %v, %v; want no grants", got, err)
	}
}
