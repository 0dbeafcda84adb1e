package groups

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"freshet/internal/storage/engine"
)

// seedRecords returns a record of every kind.
func seedRecords() [][]byte {
	key := Key{Tenant: "public", Group: "g"}
	offsets := newRecord(recordOffsets, key)
	offsets.Uvarint(1)
	offsets.offset(Partition{7, 1}, Offset{Offset: 12, LeaderEpoch: -1, Metadata: "m", Time: 1700000000000})
	stable := newRecord(recordGeneration, key)
	stable.generation(&generation{
		number: 3, protocolType: "consumer", protocol: "range", leader: "a",
		members: []storedMember{{
			id: "a", instance: "one", client: "c", host: "/h", sessionMillis: 10_000,
			rebalanceMillis: 60_000, metadata: []byte("x"), assignment: []byte("y"),
		}},
	})
	emptied := newRecord(recordEmpty, key)
	emptied.Varint(1700000000000)
	emptied.Varint(4)
	forget := newRecord(recordDeleteOffsets, key)
	forget.Uvarint(1)
	forget.partition(Partition{7, 1})
	consumers := newRecord(recordConsumers, key)
	consumers.consumers(
		&generation{number: 5, consumers: &consumersHeader{assignmentEpoch: 5, assignor: assignorRange}},
		[]string{"gone"}, []*storedConsumer{
			{
				id: "a", instance: "one", client: "c", host: "/h", rack: "r", assignor: assignorUniform, pattern: "x.*",
				rebalanceMillis: 60_000, names: []string{"orders"}, topics: []engine.TopicID{7},
				epoch: 4, previousEpoch: 3, stage: revoking,
				assigned:          []ownedPartition{{Partition{7, 0}, 3}},
				pendingRevocation: []ownedPartition{{Partition{7, 1}, 2}}, target: []Partition{{7, 0}},
			},
			{id: "b"},
		})
	mixed := consumersRecord(key,
		&generation{number: 6, consumers: &consumersHeader{assignmentEpoch: 6, assignor: assignorUniform}}, nil,
		[]*storedConsumer{{id: "a"}, {id: "c", classic: &classicMember{
			session: 10 * time.Second, protocols: []Protocol{{Name: "range", Metadata: []byte("x")}, {Name: "other"}},
		}}})
	owned := offsetsRecord(key, "acme/a", 1)
	owned.offset(Partition{7, 2}, Offset{Offset: 3, Metadata: "mm"})
	return [][]byte{
		offsets.Writer, stable.Writer, emptied.Writer, newRecord(recordDeleteGroup, key).Writer, forget.Writer,
		consumers.Writer, mixed.Writer, owned.Writer,
		payerRecord(key, "acme/b"),
	}
}

// FuzzRecord checks that a record is applied or rejected, and that the resulting state survives a
// snapshot byte for byte.
func FuzzRecord(f *testing.F) {
	seeds := seedRecords()
	for _, a := range seeds {
		for _, b := range seeds {
			f.Add(a, b)
		}
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s := newState()
		for i, record := range [][]byte{first, second} {
			next := s.Clone()
			if err := next.Apply(uint64(i+1), record); err == nil {
				s = next
			}
		}
		before := snapshot(t, s)
		again := newState()
		if err := again.Restore(bytes.NewReader(before)); err != nil {
			t.Fatalf("restoring a snapshot: %v", err)
		}
		if after := snapshot(t, again); !bytes.Equal(before, after) {
			t.Fatalf("snapshot of the restored state is\n%q, want\n%q", after, before)
		}
		checkCounts(t, again)
		restoreAll(again)
	})
}

func snapshot(t *testing.T, s *state) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := s.Snapshot(&out); err != nil {
		t.Fatalf("writing a snapshot: %v", err)
	}
	return out.Bytes()
}

// checkCounts checks the counters of every group.
func checkCounts(t *testing.T, s *state) {
	t.Helper()
	s.groups.Scan(func(_ string, item groupItem) bool {
		if got, want := item.offsets, len(s.committed(item.key)); got != want {
			t.Errorf("group %v counts %d offsets, want %d", item.key, got, want)
		}
		if got, want := item.consumers, len(s.consumersOf(item.key)); got != want {
			t.Errorf("group %v counts %d consumers, want %d", item.key, got, want)
		}
		return true
	})
	want := newUsage()
	s.groups.Scan(func(_ string, item groupItem) bool {
		want.add(item.key.Tenant, item.account, item.key.size())
		return true
	})
	s.offsets.Scan(func(item offsetItem) bool {
		want.add(item.key.Tenant, item.account, item.size())
		return true
	})
	if got := s.usage; got.all != want.all || !slices.Equal(got.accounts.Keys(), want.accounts.Keys()) ||
		!slices.Equal(got.accounts.Values(), want.accounts.Values()) ||
		!slices.Equal(got.tenants.Keys(), want.tenants.Keys()) ||
		!slices.Equal(got.tenants.Values(), want.tenants.Values()) {
		t.Errorf("state counts %d bytes of accounts %v, want %d of %v", got.all, got.accounts.Keys(), want.all,
			want.accounts.Keys())
	}
}

// restoreAll restores all stored members, which must not panic.
func restoreAll(s *state) {
	s.groups.Scan(func(_ string, item groupItem) bool {
		for _, m := range s.consumersOf(item.key) {
			_ = m.toConsumer(time.Time{})
		}
		return true
	})
}

// FuzzSnapshot checks that Restore rejects invalid snapshots.
func FuzzSnapshot(f *testing.F) {
	s := newState()
	for i, record := range seedRecords() {
		if i == 3 { // skip the deletion of the group
			continue
		}
		if err := s.Apply(uint64(i+1), record); err != nil {
			f.Fatalf("record %d: %v", i, err)
		}
	}
	var out bytes.Buffer
	if err := s.Snapshot(&out); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if s := newState(); s.Restore(bytes.NewReader(data)) == nil {
			checkCounts(t, s)
		}
	})
}
