package etcd_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/controlplane/etcd"
)

// TestLostDataOfJoinedMember deletes the data of a member that has joined a running ensemble. The
// member must not start under its old identity: it has forgotten its votes.
func TestLostDataOfJoinedMember(t *testing.T) {
	t.Parallel()
	g := newTrio(t)
	g.start(t, g.names...)
	g.stop(t, "b")
	if err := os.RemoveAll(g.dirs["b"]); err != nil {
		t.Fatal(err)
	}
	options := g.options["b"]
	options.Existing = true
	m, err := etcd.Join(t.Context(), g.dirs["b"], &options, etcd.Options{Unsafe: true})
	if err == nil {
		_ = m.Close()
	}
	if !errors.Is(err, etcd.ErrDataLost) || !strings.Contains(err.Error(), "freshet ensemble rejoin") {
		t.Errorf("got %v, want %v", err, etcd.ErrDataLost)
	}
}

// TestCutLog cuts the log of a member that was not stopped in order. etcd would take that for a crash
// during the last write, and the member would have forgotten entries that it has confirmed.
func TestCutLog(t *testing.T) {
	t.Parallel()
	_, crashed := filledMember(t)
	put(t, crashed, "last", "value") // starts, applies everything, and stops
	if err := os.Remove(filepath.Join(crashed, "CLOSED")); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Check(crashed); err != nil {
		t.Fatalf("intact files: %v", err)
	}
	logs, err := filepath.Glob(filepath.Join(crashed, "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("got %v, %v; want a log", logs, err)
	}
	data, err := os.ReadFile(logs[len(logs)-1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(logs[len(logs)-1], data[:used(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Check(crashed); err == nil || !strings.Contains(err.Error(), "member/wal") {
		t.Errorf("got %v, want an error about member/wal", err)
	}
}
