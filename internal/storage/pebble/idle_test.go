package pebble

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

func (tt *topicTable) loaded() int {
	tt.mu.RLock()
	defer tt.mu.RUnlock()
	return len(tt.m)
}

// TestIdleTopicsLeaveMemory checks that idle topics are unloaded, that busy ones are not, and
// that unloading has no visible effect.
func TestIdleTopicsLeaveMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		e := openMemory(t)
		receive := func(id engine.TopicID, most int) []engine.Delivery {
			t.Helper()
			got, err := e.Receive(ctx, id, "s", engine.ReceiveRequest{Max: most, Lease: 10 * time.Minute, Partition: 0})
			must(t, err)
			return got
		}
		describe := func(id engine.TopicID) engine.TopicStats {
			t.Helper()
			stats, err := e.DescribeTopic(ctx, id)
			must(t, err)
			return stats
		}
		for id := range engine.TopicID(5) {
			must(t, e.CreateTopic(ctx, id+1, keepAll),
				e.CreateSubscription(ctx, id+1, "s", engine.SubscriptionConfig{}, engine.Position{}))
			for i := range 4 {
				_, err := e.Append(ctx, id+1, 0, []engine.Message{{Payload: fmt.Appendf(nil, "%d", i)}})
				must(t, err)
			}
		}
		// Topic 1 has a lease, 2 a delayed redelivery, 3 a waiting consumer, 4
		// acknowledgements and redeliveries, 5 a delayed message.
		receive(1, 1)
		must(t, e.Settle(ctx, 2, "s",
			[]engine.Settlement{{ID: receive(2, 1)[0].ID, Action: engine.Nack, Delay: 5 * time.Minute}}))
		receive(3, 4)
		waited := make(chan int, 1)
		go func() {
			got, err := e.Receive(ctx, 3, "s", engine.ReceiveRequest{Max: 1, Wait: 5 * time.Minute, Partition: 0})
			if err != nil {
				t.Error(err)
			}
			waited <- len(got)
		}()
		four := receive(4, 4)
		must(t, e.Settle(ctx, 4, "s", []engine.Settlement{
			{ID: four[2].ID},
			{ID: four[0].ID, Action: engine.Nack},
			{ID: four[1].ID, Action: engine.Nack},
			{ID: four[3].ID, Action: engine.Nack},
		}))
		four = receive(4, 1)
		must(t, e.Settle(ctx, 4, "s", []engine.Settlement{{ID: four[0].ID, Action: engine.Nack}}))
		_, err := e.Append(ctx, 5, 0,
			[]engine.Message{{Payload: []byte("later"), DeliverAt: time.Now().Add(time.Hour).UnixMilli()}})
		must(t, err)
		before4, before5 := describe(4), describe(5)

		time.Sleep(4 * time.Minute)
		if n := e.topics.loaded(); n != 3 {
			t.Errorf("loaded topics: got %d, want the 3 that are busy", n)
		}
		if after := describe(4); fmt.Sprint(after) != fmt.Sprint(before4) {
			t.Errorf("topic 4: got\n%+v, want\n%+v", after, before4)
		}
		if after := describe(5); fmt.Sprint(after) != fmt.Sprint(before5) || after.Subscriptions[0].Delayed != 1 {
			t.Errorf("topic 5: got\n%+v, want\n%+v with one delayed message", after, before5)
		}
		if got := receive(4, 10); len(got) != 3 || got[0].Redeliveries != 2 || got[1].Redeliveries != 1 {
			t.Errorf("receive: got %v, want 3 messages with their redeliveries", got)
		}
		if n := <-waited; n != 0 {
			t.Errorf("waiting consumer: got %d messages, want none", n)
		}
		if got := receive(1, 10); len(got) != 3 {
			t.Errorf("topic 1: got %d messages, want the 3 that are not leased", len(got))
		}
		time.Sleep(30 * time.Minute)
		if n := e.topics.loaded(); n != 0 {
			t.Errorf("loaded topics: got %d, want none", n)
		}
	})
}

// TestDiskIsFreed removes the messages of one topic among others in every possible way, and
// checks that the disk space is freed.
func TestDiskIsFreed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const big engine.TopicID = 1
	for name, free := range map[string]func(e *Engine) error{
		"deleted": func(e *Engine) error { return e.DeleteTopic(ctx, big) },
		"retained no longer": func(e *Engine) error {
			return e.ConfigureTopic(ctx, big, engine.TopicConfig{Partitions: 1})
		},
		"acknowledged": func(e *Engine) error {
			err := e.CreateSubscription(ctx, big, "s", engine.SubscriptionConfig{},
				engine.Position{Kind: engine.Earliest})
			if err == nil {
				err = e.ConfigureTopic(ctx, big, engine.TopicConfig{Partitions: 1})
			}
			if err != nil {
				return err
			}
			return e.ResetSubscription(ctx, big, "s", engine.Position{Kind: engine.Latest})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := Open("store", Options{FS: vfs.NewMem(), MemTableBytes: 512 << 10, TrimDelay: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			fillAmongOthers(t, e, big)
			full := flushedBytes(t, e)
			if err := free(e); err != nil {
				t.Fatal(err)
			}
			// Compactions run in the background, so poll with a long timeout.
			for giveUp := time.After(5 * time.Minute); flushedBytes(t, e) > full/3; {
				select {
				case <-giveUp:
					t.Fatalf("used disk space: got %d of %d bytes, want at most a third", flushedBytes(t, e), full)
				case <-time.After(20 * time.Millisecond):
				}
			}
			for id := big + 1; id < 5; id++ {
				records, err := e.Read(ctx, id, engine.ReadRequest{Max: 100})
				if err != nil || len(records) < 8 {
					t.Errorf("topic %d: got %d messages, %v; want at least 8", id, len(records), err)
				}
			}
		})
	}
}

// fillAmongOthers writes seven of eight messages to the topic big, and the rest
// to the topics 2 to 4.
func fillAmongOthers(t *testing.T, e *Engine, big engine.TopicID) {
	t.Helper()
	makeTopics(t, e, 1, 4, false)
	noise := payload(64 << 10)
	for i := range 200 {
		id := big
		if i%8 == 0 {
			id = engine.TopicID(2 + i/8%3)
		}
		if _, err := e.Append(context.Background(), id, 0, []engine.Message{{Payload: noise}}); err != nil {
			t.Fatal(err)
		}
	}
}

// flushedBytes flushes the store and returns its disk usage.
func flushedBytes(t *testing.T, e *Engine) uint64 {
	t.Helper()
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	return e.db.Metrics().DiskSpaceUsage()
}
