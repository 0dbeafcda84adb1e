package groups_test

import (
	"errors"
	"testing"

	"freshet/internal/broker/groups"
	"freshet/internal/storage/pebble/pebbletest"
)

// TestMember checks that a member of an ensemble coordinates only the groups of the journals that
// it has acquired.
func TestMember(t *testing.T) {
	t.Parallel()
	engine, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	c, err := groups.OpenMember(t.Context(), engine, groups.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	key := groups.Key{Tenant: "public", Group: "g"}
	commit := func() error {
		return c.Commit(t.Context(), key, &groups.CommitRequest{
			Generation: -1,
			Offsets:    map[groups.Partition]groups.Offset{groups.PartitionOf(1, 0): {Offset: 7}},
		})
	}
	if err := commit(); !errors.Is(err, groups.ErrNotCoordinator) || len(c.Journals()) != 0 {
		t.Errorf("without journals: got error %v and journals %v, want %v", err, c.Journals(), groups.ErrNotCoordinator)
	}
	if err := c.AcquireJournal(t.Context(), engine, groups.JournalOf(key)); err != nil {
		t.Fatal(err)
	}
	if err := commit(); err != nil {
		t.Errorf("with the journal: got error %v, want none", err)
	}
	if err := c.ReleaseJournal(groups.JournalOf(key)); err != nil {
		t.Fatal(err)
	}
	if err := commit(); !errors.Is(err, groups.ErrNotCoordinator) {
		t.Errorf("after the release: got error %v, want %v", err, groups.ErrNotCoordinator)
	}
}
