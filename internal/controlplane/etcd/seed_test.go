package etcd_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"freshet/internal/controlplane/etcd"
)

// newSeeded is a group that has not been started: a has what one member alone had, the
// others have nothing. last is the revision of its last key, key-49.
func newSeeded(t *testing.T) (g *trio, last int64) {
	t.Helper()
	alone, err := etcd.Start(t.Context(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	client := alone.Endpoints().Call()
	for i := range 50 {
		put, err := client.Put(t.Context(), fmt.Sprintf("key-%02d", i), "value")
		if err != nil {
			t.Fatal(err)
		}
		last = put.Header.Revision
	}
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	dialed, err := alone.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := etcd.Snapshot(t.Context(), dialed, snapshot); err != nil {
		t.Fatal(err)
	}
	_, _, _ = dialed.Close(), client.Close(), alone.Close()

	g = newTrio(t)
	first := g.options["a"]
	if err := etcd.Seed(snapshot, g.dirs["a"], &first); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Intact(g.dirs["a"]); err != nil {
		t.Errorf("files of the seed: got %v, want none", err)
	}
	for _, name := range []string{"b", "c"} {
		options := g.options[name]
		options.Existing = true
		g.options[name] = options
	}
	return g, last
}

// TestSeed brings what one member has into a new group, whose other members start
// with nothing: each has all of it, at the same revisions, and the group goes on
// without the first.
func TestSeed(t *testing.T) {
	t.Parallel()
	g, last := newSeeded(t)
	began := time.Now()
	g.start(t, g.names...)
	t.Logf("three members at once, two of them without data: ready after %s", time.Since(began).Round(time.Millisecond))
	for _, name := range g.names {
		client := g.members[name].Endpoints().Call()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		got, err := client.Get(ctx, "key-49")
		cancel()
		_ = client.Close()
		if err != nil || len(got.Kvs) != 1 || got.Kvs[0].ModRevision != last || got.Header.Revision != last {
			t.Errorf("at %s: got %v %v, want revision %d", name, got, err, last)
		}
	}
	g.stop(t, "a")
	if err := g.put(t, "b", "later"); err != nil {
		t.Errorf("b and c without the seed: %v", err)
	}
	g.start(t, "a")
	if !g.has(t, "a", "later") || !g.has(t, "a", "key-00") {
		t.Error("the seed lacks something after its restart")
	}
}

// TestSeedLate starts the seed after a member without data, and the last member when
// the others have long become a group.
func TestSeedLate(t *testing.T) {
	t.Parallel()
	g, _ := newSeeded(t)
	ready := g.begin(t, "c")
	<-g.waits["c"]
	g.start(t, "a")
	ready()
	if err := g.put(t, "c", "without b"); err != nil {
		t.Errorf("a and c without b: %v", err)
	}
	g.start(t, "b")
	if !g.has(t, "b", "without b") || !g.has(t, "b", "key-00") {
		t.Error("the member that joined last lacks something")
	}
}
