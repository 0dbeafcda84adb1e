package ensemble

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/provision"
	"freshet/internal/ensemble"
	"freshet/internal/ensemble/forwarding"
)

// TestForwardedRequestsAreNotForwardedAgain checks that this member handles a request that
// another member has forwarded, even if a third member owns its topic or group by now.
func TestForwardedRequestsAreNotForwardedAgain(t *testing.T) {
	t.Parallel()
	called := false
	routes := (&Router{Members: ensemble.Single{}}).Routes(nil) // a nil cluster: owners must not be looked up
	handler := forwarding.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		called = true
		if routes.Owner(r, names.Topic{}) != nil || routes.Coordinator(r, groups.Key{}) != nil {
			t.Error("got a sender for a forwarded request, want nil")
		}
		if others, forwarded, err := routes.Coordinators(r); len(others) > 0 || !forwarded || err != nil {
			t.Errorf("got %d coordinators, forwarded %t, error %v; want none, true, nil", len(others), forwarded, err)
		}
	}), "X-Request-Id")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, forwarding.Path, http.NoBody)
	r.Header.Set("Freshet-Request-Uri", "/x")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if !called {
		t.Error("forwarded request was not served")
	}
}

// TestSinglePlane checks that the clusters of a single server have no shards and no other owners.
func TestSinglePlane(t *testing.T) {
	t.Parallel()
	local, err := dataplane.Open(dataplane.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Close() })
	plane := SinglePlane{local}
	spec := provision.Spec{UID: "u", Organization: "acme", Name: "prod", Engine: "pebble"}
	if err := plane.Provision(t.Context(), spec, func(provision.Part) {}); err != nil {
		t.Fatal(err)
	}
	c, err := plane.FindNamed("acme", "prod")
	if err != nil {
		t.Fatal(err)
	}
	if owner := c.OwnerOf(1); owner.Member != "" {
		t.Errorf("owner of a topic: got %+v, want none", owner)
	}
	if owner := c.CoordinatorOf(groups.Key{Group: "g"}); owner.Member != "" {
		t.Errorf("coordinator of a group: got %+v, want none", owner)
	}
	if owners, err := c.Coordinators(t.Context()); len(owners) > 0 || err != nil {
		t.Errorf("coordinators: got %v, %v; want none", owners, err)
	}
	if all, live := plane.Membership(); all != 1 || live != 1 {
		t.Errorf("members: got %d and %d live, want one server", all, live)
	}
	if external, synced, known, _, _ := plane.Synced(); external || !synced || !known {
		t.Errorf("log: got external %t, synced %t, known %t; want no external log", external, synced, known)
	}
	if shards := plane.Shards("u"); shards != nil {
		t.Errorf("shards: got %v, want none", shards)
	}
	if shards := plane.ShardStatus(nil); shards != nil {
		t.Errorf("shards: got %v, want none", shards)
	}
	at := ShardName{Organization: "acme", Cluster: "prod"}
	for name, call := range map[string]func(context.Context) (*Loss, error){
		"loss":   func(ctx context.Context) (*Loss, error) { return plane.Loss(ctx, at, "") },
		"accept": func(ctx context.Context) (*Loss, error) { return plane.AcceptLoss(ctx, at, "", "") },
	} {
		if _, err := call(t.Context()); err != ensemble.ErrSingle { //nolint:errorlint // the very error
			t.Errorf("%s: got error %v, want %v", name, err, ensemble.ErrSingle)
		}
	}
	_, err = plane.Journals(t.Context(), ClusterName{}, "")
	if err != ensemble.ErrSingle { //nolint:errorlint // the very error
		t.Errorf("journals: got error %v, want %v", err, ensemble.ErrSingle)
	}
	_, err = plane.AcceptJournalLoss(t.Context(), ClusterName{}, "", "", "")
	if err != ensemble.ErrSingle { //nolint:errorlint // the very error
		t.Errorf("accepting the loss of a journal: got error %v, want %v", err, ensemble.ErrSingle)
	}
	plane.HandOver(t.Context()) // does nothing
}
