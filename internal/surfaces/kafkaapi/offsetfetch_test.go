package kafkaapi_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
)

// unreachableCatalogue is an engine whose journals, except those of consumer groups, can be made
// unavailable.
type unreachableCatalogue struct {
	engine.Engine
	unreachable atomic.Bool
}

type unreachableJournal struct {
	engine.Journal
	of *unreachableCatalogue
}

func (e *unreachableCatalogue) Journal(ctx context.Context, name string) (engine.Journal, error) {
	journal, err := e.Engine.Journal(ctx, name)
	if err != nil || strings.HasPrefix(name, "groups-") {
		return journal, err
	}
	return &unreachableJournal{Journal: journal, of: e}, nil
}

func (j *unreachableJournal) Last(ctx context.Context) (uint64, error) {
	if j.of.unreachable.Load() {
		return 0, engine.ErrNoOwner
	}
	return j.Journal.Last(ctx)
}

// offsetsOf returns an OffsetFetch request for partition 0 of topics of the group "team", or for
// all topics.
func offsetsOf(version int16, topics ...string) *kmsg.OffsetFetchRequest {
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Version, r.Group = version, "team"
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = r.Group
	for _, name := range topics {
		old := kmsg.NewOffsetFetchRequestTopic()
		old.Topic, old.Partitions = name, []int32{0}
		r.Topics = append(r.Topics, old)
		topic := kmsg.NewOffsetFetchRequestGroupTopic()
		topic.Topic, topic.Partitions = name, []int32{0}
		group.Topics = append(group.Topics, topic)
	}
	r.Groups = []kmsg.OffsetFetchRequestGroup{group}
	return r
}

// offsetSummary formats a response: the code of the group, then topics and offsets.
func offsetSummary(r *kmsg.OffsetFetchResponse) string {
	var all strings.Builder
	fmt.Fprint(&all, "code ", r.ErrorCode)
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			fmt.Fprintf(&all, ", %s-%d at %d code %d", t.Topic, p.Partition, p.Offset, p.ErrorCode)
		}
	}
	for _, g := range r.Groups {
		fmt.Fprint(&all, g.ErrorCode)
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&all, ", %s-%d at %d code %d", t.Topic, p.Partition, p.Offset, p.ErrorCode)
			}
		}
	}
	return all.String()
}

// TestOffsetFetchWithoutCatalogue checks that a topic that cannot be looked up is an error that
// consumers retry. Without committed offsets they would start from the beginning.
func TestOffsetFetchWithoutCatalogue(t *testing.T) {
	t.Parallel()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	failing := &unreachableCatalogue{Engine: eng}
	w := newHarnessOn(t, failing)
	w.partitioned("orders", 1)
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 7})
	w.ok(kadm.NewClient(w.client()).CommitAllOffsets(short(t), "team", offsets))
	r := w.wire(w.token)
	const topic = "public.default.none" // a missing topic is looked up in an up-to-date catalogue
	for _, tc := range []struct {
		version     int16
		topics      []string
		good, wrong string
	}{
		{1, []string{topic}, "code 0, " + topic + "-0 at -1 code 0", "code 0, " + topic + "-0 at -1 code 16"},
		{5, []string{topic}, "code 0, " + topic + "-0 at -1 code 0", "code 16"},
		{8, []string{topic}, "code 00, " + topic + "-0 at -1 code 0", "code 016"},
		{8, []string{"orders", topic}, "code 00, orders-0 at 7 code 0, " + topic + "-0 at -1 code 0", "code 016"},
		{8, []string{"a.b.none", "none"}, "code 00, a.b.none-0 at -1 code 0, none-0 at -1 code 0", "code 016"},
	} {
		failing.unreachable.Store(false)
		if got := offsetSummary(roundTrip[*kmsg.OffsetFetchResponse](r,
			offsetsOf(tc.version, tc.topics...))); got != tc.good {
			t.Errorf("version %d of %v: got %q, want %q", tc.version, tc.topics, got, tc.good)
		}
		failing.unreachable.Store(true)
		if got := offsetSummary(roundTrip[*kmsg.OffsetFetchResponse](r,
			offsetsOf(tc.version, tc.topics...))); got != tc.wrong {
			t.Errorf("version %d of %v without a catalogue: got %q, want %q", tc.version, tc.topics, got, tc.wrong)
		}
	}
}

// TestOffsetFetchElsewhere checks that a member that lost the journal of a group does not return
// its offsets.
func TestOffsetFetchElsewhere(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 1)
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 7})
	w.ok(kadm.NewClient(w.client()).CommitAllOffsets(short(t), "team", offsets))
	key := groups.Key{Tenant: "public", Group: "team"}
	committed, err := w.cluster.Groups.Committed(key)
	w.ok(err)
	w.ok(w.cluster.Groups.ReleaseJournal(groups.JournalOf(key)))
	r := w.wire(w.token)
	for _, request := range []*kmsg.OffsetFetchRequest{offsetsOf(8, "orders"), offsetsOf(8)} {
		if got := offsetSummary(roundTrip[*kmsg.OffsetFetchResponse](r, request)); got != "code 016" {
			t.Errorf("offsets of a lost journal: got %q, want only code 16", got)
		}
	}
	found := 0
	committed.Each(func(_ groups.Partition, o groups.Offset) {
		if o.Offset == 7 {
			found++
		}
	})
	if found != 1 {
		t.Errorf("earlier snapshot: got %d offsets, want one", found)
	}
}
