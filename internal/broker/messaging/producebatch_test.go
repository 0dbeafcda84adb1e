package messaging_test

import (
	"testing"

	"freshet/internal/broker/messaging"
)

func TestProduceBatch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Limits: messaging.Limits{MessageBytes: 100, MaxBatch: 5}})
	ctx := t.Context()
	name := c.create("orders", 4)
	c.subscribe(name, "s")
	msgs := []messaging.Message{*text("a"), *text("b"), *text(string(make([]byte, 101))), *text("c"), *text("d")}
	msgs[3].Key = "order-42"
	results, err := c.Producer.ProduceBatch(ctx, name, msgs)
	c.do(err)
	for i, r := range results {
		if (r.Err != nil) != (i == 2) {
			t.Errorf("message %d: %v", i, r.Err)
		}
	}
	wantErr(t, results[2].Err, messaging.ErrTooLarge)
	if results[3].ID.Partition != 2 {
		t.Errorf("message with a key went to partition %d, want 2", results[3].ID.Partition)
	}
	if a, b, d := results[0].ID, results[1].ID, results[4].ID; a.Partition != b.Partition ||
		a.Partition != d.Partition || a.Entry >= b.Entry || b.Entry >= d.Entry {
		t.Errorf("messages without a key are out of order: %v %v %v", a, b, d)
	}
	if got := c.receive(name, "s", 5); len(got) != 4 {
		t.Errorf("got %d messages", len(got))
	}
	_, err = c.Producer.ProduceBatch(ctx, name, make([]messaging.Message, 6))
	wantErr(t, err, messaging.ErrBatch)
	_, err = c.Producer.ProduceBatch(ctx, name, nil)
	wantErr(t, err, messaging.ErrBatch)
}
