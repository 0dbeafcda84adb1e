package pebble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
)

// usageOf returns the usage of all topics.
func usageOf(t testing.TB, e *Engine) map[engine.TopicID]engine.Usage {
	t.Helper()
	all := map[engine.TopicID]engine.Usage{}
	if err := e.Usage(t.Context(), func(f engine.Usage) {
		if _, twice := all[f.Topic]; twice {
			t.Errorf("usage of topic %d: got it twice, want it once", f.Topic)
		}
		all[f.Topic] = f
	}); err != nil {
		t.Fatal(err)
	}
	wantUsageOf(t, e, all)
	return all
}

// wantUsageOf checks that UsageOf of all topics, and of one that does not exist, has the same topics as Usage.
func wantUsageOf(t testing.TB, e *Engine, all map[engine.TopicID]engine.Usage) {
	t.Helper()
	ids := append(slices.Collect(maps.Keys(all)), 1<<40)
	some := map[engine.TopicID]engine.Usage{}
	if err := e.UsageOf(t.Context(), ids, func(f engine.Usage) { some[f.Topic] = f }); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(some, all) {
		t.Errorf("usage of the topics %v: got %+v, want %+v", ids, some, all)
	}
}

func wantUsage(t *testing.T, e *Engine, when string, id engine.TopicID, backlog, leased uint64, oldest int64) {
	t.Helper()
	f := usageOf(t, e)[id]
	if f.Backlog != backlog || f.Leased != leased || f.Oldest != oldest || (f.Stored > 0) != (backlog > 0) {
		t.Errorf("%s: topic %d: got %+v, want backlog %d, leased %d, oldest %d and stored bytes to match", when, id, f,
			backlog, leased, oldest)
	}
}

// TestUsage checks the usage of a topic in use, unloaded, found by the survey after a
// restart, and deleted.
func TestUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, fs := context.Background(), vfs.NewMem()
		e, err := Open("store", Options{FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		config := engine.TopicConfig{Partitions: 2, RetainAge: 0, RetainBytes: 0}
		err = e.CreateTopic(ctx, 1, config)
		for id := engine.TopicID(2); id <= 50; id++ { // these topics are not used
			err = errors.Join(err, e.CreateTopic(ctx, id, config))
		}
		for _, sub := range []string{"a", "b"} {
			err = errors.Join(err,
				e.CreateSubscription(ctx, 1, sub, engine.SubscriptionConfig{}, engine.Position{Kind: engine.Earliest}))
		}
		start := time.Now().UnixMilli()
		for i := range 6 {
			_, failed := e.Append(ctx, 1, int32(i%2), []engine.Message{{Payload: []byte("x")}})
			err = errors.Join(err, failed)
			time.Sleep(time.Second)
		}
		if err != nil {
			t.Fatal(err)
		}
		wantUsage(t, e, "produced", 1, 12, 0, start)
		got, err := e.Receive(ctx, 1, "a", engine.ReceiveRequest{Max: 2, Partition: 0})
		if err != nil || len(got) != 2 {
			t.Fatalf("received %d, %v", len(got), err)
		}
		wantUsage(t, e, "leased", 1, 12, 2, start)
		for _, sub := range []string{"a", "b"} {
			err = errors.Join(err, e.Settle(ctx, 1, sub, []engine.Settlement{{ID: got[0].ID, Action: engine.Ack}}))
		}
		if err != nil {
			t.Fatal(err)
		}
		wantUsage(t, e, "acknowledged", 1, 10, 1, start+1000)
		if err := e.Settle(ctx, 1, "a", []engine.Settlement{{ID: got[1].ID, Action: engine.Ack}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		if n := e.topics.loaded(); n != 0 {
			t.Fatalf("loaded topics: got %d, want none", n)
		}
		wantUsage(t, e, "out of memory", 1, 9, 0, start+1000)
		if n := len(usageOf(t, e)); n != 1 || e.topics.loaded() != 0 {
			t.Errorf("got usage of %d topics and %d loaded topics, want 1, which stores something, and none", n,
				e.topics.loaded())
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if e, err = Open("store", Options{FS: fs}); err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		usageOf(t, e)
		time.Sleep(time.Second) // for the survey
		wantUsage(t, e, "after a restart", 1, 9, 0, start+1000)
		if n := e.topics.loaded(); n != 0 {
			t.Errorf("loaded topics after the survey: got %d, want none", n)
		}
		if err := e.DeleteTopic(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if all := usageOf(t, e); len(all) != 0 {
			t.Errorf("usage after the topic was deleted: got %v, want none", all)
		}
	})
}

// TestDeadLettersAreCounted checks that a dead letter is counted for its original topic.
func TestDeadLettersAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		e, err := Open("store", Options{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		moved := make(chan engine.TopicID, 10)
		e.OnDeadLetter(func(id engine.TopicID) { moved <- id })
		err = errors.Join(e.CreateTopic(ctx, 1, keepAll), e.CreateTopic(ctx, 2, keepAll),
			e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{MaxDeliveries: 1, DeadLetterTopic: 2},
				engine.Position{Kind: engine.Earliest}))
		_, appended := e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("x")}})
		got, failed := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})
		if err := errors.Join(err, appended, failed); err != nil || len(got) != 1 {
			t.Fatalf("received %d, %v", len(got), err)
		}
		if err := e.Settle(ctx, 1, "s", []engine.Settlement{{ID: got[0].ID, Action: engine.Nack}}); err != nil {
			t.Fatal(err)
		}
		if id := <-moved; id != 1 || len(moved) != 0 {
			t.Errorf("dead letters: got one of topic %d and %d more, want one of topic 1", id, len(moved))
		}
	})
}

// BenchmarkUsageIdle measures Usage of a store with many idle topics.
func BenchmarkUsageIdle(b *testing.B) {
	for _, topics := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(topics), func(b *testing.B) {
			e := openLean(b)
			makeTopics(b, e, 1, topics, false)
			e.topics.evict()
			e.topics.evict()
			for b.Loop() {
				usageOf(b, e)
			}
			if n := e.topics.loaded(); n != 0 {
				b.Errorf("loaded topics: got %d, want none", n)
			}
		})
	}
}
