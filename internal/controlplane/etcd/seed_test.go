package etcd_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"freshet/internal/controlplane/etcd"
)

// newSeeded returns an ensemble that has not been started. Member a has the data of a single
// member, the others have none. last is the revision of its last key, key-49.
func newSeeded(t *testing.T) (g *trio, last int64) {
	t.Helper()
	alone, err := etcd.Start(t.Context(), t.TempDir(), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	client := alone.Client()
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
		t.Errorf("checking the files of the seed: %v", err)
	}
	for _, name := range []string{"b", "c"} {
		options := g.options[name]
		options.Existing = true
		g.options[name] = options
	}
	return g, last
}

// TestSeed moves the data of a single member into a new ensemble whose other members start without
// data. Each member must have all keys at the same revisions, and the ensemble must keep working
// without the first member.
func TestSeed(t *testing.T) {
	t.Parallel()
	g, last := newSeeded(t)
	began := time.Now()
	g.start(t, g.names...)
	t.Logf("three members, two of them without data: ready after %s", time.Since(began).Round(time.Millisecond))
	for _, name := range g.names {
		client := g.members[name].Client()
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
	if !g.exists(t, "a", "later") || !g.exists(t, "a", "key-00") {
		t.Error("restarted seed lacks keys")
	}
}

// TestSeedLate starts the seed after a member without data, and the last member after the others
// have formed the ensemble.
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
	if !g.exists(t, "b", "without b") || !g.exists(t, "b", "key-00") {
		t.Error("member that joined last lacks keys")
	}
}
