package pebble

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
)

// TestDecodedBatchIsCached has a consumer read a batch message by message: after the first message,
// the decoded batch is cached, and messages that were trimmed are not found in it.
func TestDecodedBatchIsCached(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	e, err := Open("store", Options{FS: vfs.NewMem(), Splitter: enginetest.Lines{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := e.CreateTopic(ctx, 1, keepAll); err != nil {
		t.Fatal(err)
	}
	if err := e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}); err != nil {
		t.Fatal(err)
	}
	batch := engine.MessageBatch{Format: engine.KafkaRecordBatch, Count: 10, MaxTime: 1}
	for i := range batch.Count {
		batch.Body = fmt.Appendf(batch.Body, "1 m%d\n", i)
	}
	pending, err := e.AppendBatch(ctx, 1, 0, batch, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := pending.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	topic, err := e.topics.acquire(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer topic.release()
	p, err := topic.partition(0)
	if err != nil {
		t.Fatal(err)
	}
	if p.recentSplitAt(0) != nil {
		t.Error("before the first read: got a cached batch, want none")
	}
	for i := range 3 {
		got, err := e.Receive(ctx, 1, "s", engine.ReceiveRequest{Max: 1, Partition: engine.AllPartitions})
		if want := fmt.Sprintf("m%d", i); err != nil || len(got) != 1 || string(got[0].Payload) != want {
			t.Fatalf("message %d: got %v, %v, want %s", i, got, err, want)
		}
		if p.recentSplitAt(uint64(i)+1) == nil {
			t.Errorf("after message %d: got no cached batch, want one", i)
		}
	}
	if _, err := e.Trim(ctx, 1, 0, 5); err != nil {
		t.Fatal(err)
	}
	if p.recentSplitAt(4) != nil {
		t.Error("trimmed message: got a cached batch, want none")
	}
	if got, _, err := p.read(ctx, 5); err != nil || string(got.Payload) != "m5" {
		t.Errorf("first message that is not trimmed: got %q, %v, want m5", got.Payload, err)
	}
	if p.recentSplitAt(10) != nil {
		t.Error("entry after the last of the batch: got a cached batch, want none")
	}
}
