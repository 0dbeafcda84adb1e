package pebble

import (
	"context"
	"testing"

	"freshet/internal/storage/engine"
)

// TestCompletedBatchesHoldNoData checks that what still refers to a commit batch that has
// completed (topics, subscriptions, journals) keeps none of its data in memory.
func TestCompletedBatchesHoldNoData(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := openMemory(t)
	must(t, e.CreateTopic(ctx, 1, keepAll),
		e.CreateSubscription(ctx, 1, "s", engine.SubscriptionConfig{}, engine.Position{}))
	created, err := e.Journal(ctx, "j")
	must(t, err)
	_, err = created.Append(ctx, 0, []byte("r"))
	must(t, err)
	_, err = e.Append(ctx, 1, 0, []engine.Message{{Payload: []byte("x")}})
	must(t, err, e.Close()) // Close waits for the goroutine that completes batches
	topic := e.topics.m[1]
	j, _ := created.(*journal)
	for name, g := range map[string]*commitBatch{
		"topic.createdBy":        topic.createdBy,
		"topic.pinnedBy":         topic.pinnedBy,
		"subscription.createdBy": topic.subs["s"].createdBy,
		"partition.lastCommit":   (*topic.parts.Load())[0].lastCommit,
		"journal.createdBy":      j.createdBy,
		"journal.lastBatch":      j.lastBatch,
	} {
		if g == nil {
			t.Fatalf("%s: got no commit batch, want one", name)
		}
		if g.batch != nil || g.coalesced != nil || g.partitions != nil || g.topics != nil || g.journals != nil ||
			g.after != nil || g.attributes != nil || g.attributeIndex != nil || g.logAppend != nil {
			t.Errorf("%s: got a commit batch with data, want an empty one: %+v", name, g)
		}
	}
}
