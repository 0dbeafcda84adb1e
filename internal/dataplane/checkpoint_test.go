package dataplane_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"freshet/internal/broker/messaging"
)

// TestCheckpoint copies a plane with a running cluster, one whose store exists and is not
// open, and one that is being deleted, and opens another plane on the copy.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	orders := topic(t, "persistent://public/default/orders")
	p := open(t, dir)
	for _, name := range []string{"runs", "waits"} {
		catalogue := running(t, p, spec("acme", name)).Broker.Catalogue
		if err := catalogue.CreateTopic(t.Context(), orders, messaging.NewTopic{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = open(t, dir)
	running(t, p, spec("acme", "runs"))
	if err := os.Mkdir(filepath.Join(dir, "uid-acme-gone.deleted"), 0o700); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	var begun []int
	uids, err := p.Checkpoint(t.Context(), to, func(_ string, n, _ int) { begun = append(begun, n) })
	if want := []string{"uid-acme-runs", "uid-acme-waits"}; err != nil || !slices.Equal(uids, want) ||
		len(begun) != len(want) {
		t.Fatalf("got %v (%v), %v, want %v", uids, begun, err, want)
	}
	again := open(t, to)
	for _, name := range []string{"runs", "waits"} {
		if _, err := running(t, again, spec("acme", name)).Broker.Catalogue.Topic(t.Context(), orders); err != nil {
			t.Errorf("the copy of the cluster that %s: %v", name, err)
		}
	}
}
