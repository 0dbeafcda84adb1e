package pebble

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	cdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// keyCounts counts the keys of the store by their first byte, and those of topics by the byte
// of their kind as well.
func keyCounts(t *testing.T, e *Engine) map[string]int {
	t.Helper()
	iter, err := e.db.NewIter(&cdb.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer iter.Close()
	counts := map[string]int{}
	for ok := iter.First(); ok; ok = iter.Next() {
		kind := string(iter.Key()[0])
		if kind == string(rune(keyTopic)) {
			kind += string(iter.Key()[topicPrefixLen])
		}
		counts[kind]++
	}
	if err := iter.Error(); err != nil {
		t.Fatal(err)
	}
	return counts
}

// TestDeletionLeavesNoKeys creates a topic with every kind of key and deletes its
// subscription, then the topic.
func TestDeletionLeavesNoKeys(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := openMemory(t)
	must(t, e.CreateTopic(ctx, 1,
		engine.TopicConfig{Partitions: 2, RetainAge: time.Hour, RetainBytes: -1, Deduplicate: true}))
	must(t, e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{Kind: engine.Earliest}))
	later := time.Now().Add(time.Hour).UnixMilli()
	for i := range uint64(6) {
		_, err := e.Append(ctx, 1, 1,
			[]engine.Message{{Dedup: engine.DedupKey{Producer: "p", Sequence: i}}, {DeliverAt: later}})
		must(t, err)
	}
	got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 4, Partition: 1})
	must(t, err)
	must(t, e.Settle(ctx, 1, "s",
		[]engine.Settlement{{ID: got[0].ID}, {ID: got[2].ID}, {ID: got[1].ID, Action: engine.Nack}}))
	full := keyCounts(t, e)
	for _, kind := range []byte{ofConfig, ofEra, ofDelay, ofDue, ofSub, ofCursor, ofAcks, ofDedup} {
		if full[string([]byte{keyTopic, kind})] == 0 {
			t.Errorf("keys of kind %c: got none in %v, want some", kind, full)
		}
	}

	must(t, e.DeleteSubscription(ctx, 1, "s"))
	counts := keyCounts(t, e)
	for _, kind := range []byte{ofSub, ofCursor, ofAcks, ofCount} {
		if n := counts[string([]byte{keyTopic, kind})]; n != 0 {
			t.Errorf("keys of kind %c after the subscription was deleted: got %d, want none", kind, n)
		}
	}
	must(t, e.DeleteTopic(ctx, 1))
	counts = keyCounts(t, e)
	delete(counts, string(rune(keyFormat)))
	delete(counts, string(rune(keyEraNow)))
	if len(counts) != 0 {
		t.Errorf("keys after the topic was deleted: got %v, want none", counts)
	}
}

// TestClockGoesBack opens a store on a machine whose clock is years behind: publish times do
// not decrease, and positions by time still work.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fs := vfs.NewMem()
	put := func(t *testing.T, e *Engine, payload string) {
		t.Helper()
		if _, err := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte(payload)}}); err != nil {
			t.Fatal(err)
		}
	}
	e, err := Open("store", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	makeTopics(t, e, 1, 1, true)
	put(t, e, "before")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	synctest.Test(t, func(t *testing.T) { // where it is the year 2000
		if !time.Now().Before(before) {
			t.Fatal("clock: got no earlier time, want the year 2000")
		}
		e, err := Open("store", Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		put(t, e, "after")
		records, err := e.Read(ctx, 1, engine.ReadRequest{Max: 10})
		if err != nil || len(records) != 2 || records[1].PublishTime < records[0].PublishTime {
			t.Errorf("read: got %v, %v; want 2 messages with publish times that do not decrease", records, err)
		}
		since, err := e.Read(ctx, 1, engine.ReadRequest{Max: 10, Since: before.Add(time.Hour)})
		if err != nil || len(since) != 0 {
			t.Errorf("read messages of the next hour: got %v, %v; want none", since, err)
		}
		got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 10, Lease: time.Minute, Partition: 0})
		if err != nil || len(got) != 2 {
			t.Fatalf("receive: got %v, %v; want 2 messages", got, err)
		}
		time.Sleep(time.Minute)
		if got, err = e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 10, Partition: 0}); err != nil ||
			len(got) != 2 {
			t.Errorf("receive after the lease: got %v, %v; want 2 messages", got, err)
		}
	})
}

// TestUnfinishedTopicStaysLoaded tries to unload a topic while an append is written and not
// synced: a topic that is loaded again would show messages that are not durable.
func TestUnfinishedTopicStaysLoaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := newHeldDisk()
		e, err := Open("store", Options{FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		makeTopics(t, e, 1, 1, false)
		release := disk.block()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("x")}})
		}()
		synctest.Wait()
		cancel()
		<-done
		e.topics.evict()
		e.topics.evict()
		if records, err := e.Read(context.Background(), 1, engine.ReadRequest{Max: 1}); err != nil ||
			len(records) != 0 {
			t.Errorf("read before the sync: got %d messages, %v; want none", len(records), err)
		}
		release()
		synctest.Wait()
		e.topics.evict()
		e.topics.evict()
		if n := e.topics.loaded(); n != 0 {
			t.Errorf("loaded topics: got %d, want none", n)
		}
		if records, err := e.Read(context.Background(), 1, engine.ReadRequest{Max: 1}); err != nil ||
			len(records) != 1 {
			t.Errorf("read after the sync: got %d messages, %v; want 1", len(records), err)
		}
	})
}
