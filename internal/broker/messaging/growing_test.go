package messaging_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/pebble/pebbletest"
)

// halfGrown returns a cluster with a topic that has four partitions in the catalogue and two in the
// engine, as during GrowTopic. Each of the two contains three messages.
func halfGrown(t *testing.T) (*cluster, *crashingEngine, names.Topic) {
	t.Helper()
	real, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() })
	eng := &crashingEngine{Engine: real}
	c := openOver(t, eng, messaging.Options{})
	name := c.create("orders", 2)
	c.subscribe(name, "s")
	for i := range 6 {
		c.produce(name.WithPartition(int32(i%2)), text(strconv.Itoa(i)))
	}
	eng.configure = true
	if err := c.Catalogue.GrowTopic(t.Context(), name, 4); !errors.Is(err, errCrash) {
		t.Fatalf("got error %v, want %v", err, errCrash)
	}
	return c, eng, name
}

// TestStatsOfAPartitionThatTheEngineLacks checks that the statistics of such a partition are empty,
// and not those of the whole topic or of partition 0.
func TestStatsOfAPartitionThatTheEngineLacks(t *testing.T) {
	t.Parallel()
	c, _, name := halfGrown(t)
	whole, err := c.Statistics.Stats(t.Context(), name)
	c.do(err)
	if len(whole.Subscriptions) != 1 || whole.Subscriptions[0].Backlog != 6 {
		t.Fatalf("whole topic: got %+v, want a backlog of 6", whole.Subscriptions)
	}
	for partition := range int32(4) {
		want := uint64(3)
		if partition >= 2 {
			want = 0
		}
		byName, err := c.Statistics.Stats(t.Context(), name.WithPartition(partition))
		c.do(err)
		for _, got := range []messaging.Stats{byName, whole.OfPartition(partition)} {
			if got.Topic.Partition != partition || len(got.Partitions) != 1 || got.Partitions[0].Next != want {
				t.Errorf("partition %d: got partition %d with %+v, want one row that ends at %d",
					partition, got.Topic.Partition, got.Partitions, want)
			}
			sub := got.Subscriptions[0]
			if len(sub.Cursors) != 1 || sub.Backlog != want || (sub.BacklogBytes > 0) != (want > 0) {
				t.Errorf("partition %d: got %+v, want one cursor and a backlog of %d", partition, sub, want)
			}
		}
	}
	if whole.Subscriptions[0].Backlog != 6 || len(whole.Subscriptions[0].Cursors) != 2 {
		t.Errorf("Of changed its receiver: got %+v, want a backlog of 6", whole.Subscriptions[0])
	}
}

// TestTailOfAPartitionThatTheEngineLacks checks that a tail of such a partition opens, and reads
// messages once the engine has the partition.
func TestTailOfAPartitionThatTheEngineLacks(t *testing.T) {
	t.Parallel()
	for _, local := range []string{"orders-partition-3", "orders"} {
		for from, position := range map[string]messaging.TailFrom{
			"earliest": {Earliest: true},
			"latest":   {},
			"after":    {After: &names.MessageID{Entry: 0, Partition: 3, BatchSize: 1}},
		} {
			t.Run(local+" "+from, func(t *testing.T) {
				t.Parallel()
				c, eng, name := halfGrown(t)
				ctx := t.Context()
				if position.After != nil {
					info, err := c.Catalogue.Topic(ctx, name)
					c.do(err)
					after := *position.After
					after.Ledger = int64(info.ID)
					position.After = &after
					eng.configure = false // opening a tail after a message creates the partition in the engine
				}
				tail, err := c.Consumer.Tail(ctx, topic(local), position)
				c.do(err)
				eng.configure = false
				for i := range 2 { // the tail with position after skips the first
					c.produce(name.WithPartition(3), text("new "+strconv.Itoa(i)))
				}
				for {
					got, err := tail.Next(ctx, 10*time.Second)
					c.do(err)
					if len(got) == 0 {
						t.Fatal("got no message of the new partition, want one")
					}
					if string(got[len(got)-1].Payload) == "new 1" {
						return
					}
				}
			})
		}
	}
}
