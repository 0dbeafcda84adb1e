package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/controlplane/etcd"
	"freshet/test/tally"
)

// TestFaultFlippedValue flips a bit of a value in the tree of a member, in files that were not closed in
// order, so that no checksum shows it. A member that a majority contradicts refuses to start. With
// one other member nothing is decided, and the member runs until the third has returned and a
// compaction shows the difference. The other members start and serve throughout.
func TestFaultFlippedValue(t *testing.T) {
	t.Parallel()
	g := newTrio(t)
	g.start(t, g.names...)
	fault := tally.Fault{Name: "value in the tree of an etcd member flipped"}
	client := g.members["b"].Client()
	defer client.Close()
	if _, err := client.Put(t.Context(), "flipped", "flipped=value"); err != nil {
		t.Fatal(err)
	}
	if err := g.put(t, "a", "last"); err != nil {
		t.Fatal(err)
	}
	if !g.exists(t, "c", "last") {
		t.Fatal("c does not have the keys")
	}
	serves := func(at string, keys ...string) {
		t.Helper()
		for _, key := range keys {
			fault.Checked++
			if err := g.put(t, at, key); err != nil {
				fault.Lost++
				t.Errorf("put at %s: %v", at, err)
			}
		}
	}
	damages := make(chan error, 1)
	const advice = "run the command"
	join := func(name string) (*etcd.Member, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		options := g.options[name]
		return etcd.Join(ctx, g.dirs[name], &options, etcd.Options{
			Unsafe: true, Advice: advice, ReportDamage: func(cause error) { damages <- cause },
		})
	}
	isDamage := func(when string, err error) {
		t.Helper()
		var damage *etcd.Damage
		if !errors.As(err, &damage) || !errors.Is(err, etcd.ErrDamaged) ||
			!strings.Contains(err.Error(), "member/snap/db") || !strings.Contains(err.Error(), advice) {
			fault.Wrong++
			t.Errorf("%s: got %v, want damage of member/snap/db and the advice", when, err)
		}
	}

	g.stop(t, "c")
	flipValue(t, g.dirs["c"], "value")
	fault.Injected++
	if err := etcd.Intact(g.dirs["c"]); err != nil {
		t.Fatalf("the files show the damage: %v", err)
	}
	m, err := join("c")
	if m != nil {
		_ = m.Close()
	}
	isDamage("start with two others", err)
	serves("a", "after")
	serves("b", "after")

	g.stop(t, "a")
	if m, err = join("c"); err != nil { // b alone does not decide which of the two is damaged
		t.Fatalf("start with one other: %v", err)
	}
	g.members["c"] = m
	g.start(t, "a") // a good member starts beside a damaged one
	serves("a", "later")
	if _, err := client.Compact(t.Context(), 3, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	select {
	case err := <-m.Failed():
		isDamage("after a compaction", err)
	case <-time.After(2 * time.Minute):
		t.Fatal("the damaged member still runs after a compaction")
	}
	fault.Recovery = time.Since(began)
	if cause := <-damages; !strings.Contains(cause.Error(), "differs from that of members a, b") {
		t.Errorf("got %v, want the members that differ", cause)
	}
	g.stop(t, "c")
	serves("a", "end")
	serves("b", "end")
	fault.Record(t)
}

// flipValue flips a bit of every occurrence of a value in the tree of a stopped member. It removes the
// checksums of the files, which an orderly stop leaves behind.
func flipValue(t *testing.T, dir, value string) {
	t.Helper()
	path := filepath.Join(dir, "member", "snap", "db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := bytes.Count(data, []byte("="+value))
	data = bytes.ReplaceAll(data, []byte("="+value), []byte("<"+value)) // one bit
	if n == 0 {
		t.Fatal("the value is not in the file")
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "CLOSED")); err != nil {
		t.Fatal(err)
	}
}
