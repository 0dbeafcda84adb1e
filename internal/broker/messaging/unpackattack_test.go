package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"freshet/internal/base/fairshare"
	"freshet/internal/base/names"
	"freshet/internal/base/unpacking"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/test/tally"
)

// newBudgetCluster returns a cluster with a budget for decompressed batches of this size.
func newBudgetCluster(t *testing.T, bytes int64) (*cluster, *unpacking.Budget) {
	t.Helper()
	budget := unpacking.New(bytes)
	eng, release, err := pebbletest.OpenMemoryBudget(messaging.Splitter{}, budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = eng.Close()
		release()
	})
	return openOver(t, eng, messaging.Options{Unpacking: budget}), budget
}

// store appends a batch without the checks for producers, as an earlier version did.
func (c *cluster) store(local string, count int32, batch []byte) {
	c.t.Helper()
	kafka, err := c.Kafka.KafkaTopic(c.t.Context(), topic(local))
	c.do(err)
	pending, err := c.engine.AppendBatch(c.t.Context(), engine.TopicID(kafka.ID()), 0,
		engine.MessageBatch{Format: engine.KafkaRecordBatch, Count: count, MaxTime: 1, Body: batch}, nil)
	c.do(err)
	c.do(pending.Wait(c.t.Context()))
}

// consumeOne receives one message of a subscription, and acknowledges it.
func (c *cluster) consumeOne(ctx context.Context, name names.Topic, sub string) (messaging.Received, error) {
	got, err := c.Consumer.Receive(ctx, name, sub, messaging.ReceiveOptions{})
	if err != nil {
		return messaging.Received{}, err
	}
	if len(got) != 1 {
		return messaging.Received{}, fmt.Errorf("got %d messages, want 1", len(got))
	}
	return got[0], c.Consumer.Settle(ctx, name, sub, messaging.Settlement{ID: got[0].ID, Action: messaging.AckTo})
}

// TestAttackBatchOfEmptyRecords sends a batch of 900,000 empty records, which producers may not, and
// stores one as an earlier version did. Reading that one message by message must not decode it again
// for each of them, although it is larger than the cache.
func TestAttackBatchOfEmptyRecords(t *testing.T) {
	t.Parallel()
	const count, reads = 900_000, 20_000
	c, budget := newBudgetCluster(t, 16<<20)
	name := c.create("t", 0)
	c.subscribe(name, "s")
	batch := gzipBatch(count, nil)
	succeeded := 0
	if err := c.appendBatch(name, batch); !errors.Is(err, records.ErrTooLarge) {
		succeeded++
		t.Errorf("producing %d records in a batch: got %v, want %v", count, err, records.ErrTooLarge)
	}
	c.store("t", count, batch)
	before := budget.Stats()
	for i := range reads {
		got, err := c.consumeOne(t.Context(), name, "s")
		if err != nil || got.ID.Entry != int64(i) {
			t.Fatalf("message %d: got %v, %v, want it", i, got.ID, err)
		}
	}
	after := budget.Stats()
	if opened := after.Opened - before.Opened; opened > 1 {
		succeeded++
		t.Errorf("reading %d messages: the batch was decoded %d times, want once", reads, opened)
	}
	if after.Cached > after.CacheLimit || after.Working != 0 {
		succeeded++
		t.Errorf("got %+v, want nothing in work and a cache within its limit", after)
	}
	tally.Attack(t, "batch of 900,000 empty records", reads, succeeded)
}

// TestAttackSplitCache has an organization read many large batches in turn, which do not fit into the
// cache together, while another one reads a batch message by message. The second one must not
// decode its batch again, and the first one not for each message.
func TestAttackSplitCache(t *testing.T) {
	t.Parallel()
	const batches, rounds, count = 40, 50, 2000
	c, budget := newBudgetCluster(t, 16<<20)
	attacker := fairshare.WithCaller(t.Context(), fairshare.Caller{Organization: "a", Principal: "x"})
	victim := fairshare.WithCaller(t.Context(), fairshare.Caller{Organization: "b", Principal: "y"})
	prepare := func(local string) names.Topic {
		name := c.create(local, 0)
		c.subscribe(name, "s")
		c.do(c.appendBatch(name, gzipBatch(count, make([]byte, 1000))))
		return name
	}
	var theirs []names.Topic
	for i := range batches {
		theirs = append(theirs, prepare(fmt.Sprintf("a%d", i)))
	}
	own := prepare("b")
	read := func(ctx context.Context, name names.Topic) {
		if _, err := c.consumeOne(ctx, name, "s"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	ofVictim := int64(0)
	for range rounds {
		for _, name := range theirs {
			read(attacker, name)
		}
		before := budget.Stats().Opened
		read(victim, own)
		ofVictim += budget.Stats().Opened - before
		if got := budget.Stats(); got.Cached > got.CacheLimit {
			t.Fatalf("got %d bytes in the cache, want at most %d", got.Cached, got.CacheLimit)
		}
	}
	succeeded := 0
	if ofVictim > 1 {
		succeeded = 1
		t.Errorf("the batch of the second organization was decoded %d times, want once", ofVictim)
	}
	tally.Attack(t, "organization that evicts the decoded batches of others", rounds*batches, succeeded)
}

// TestWholeBatchIsReadOnce reads all messages of a batch that is larger than the budget, in calls of
// many messages: it is decoded once.
func TestWholeBatchIsReadOnce(t *testing.T) {
	t.Parallel()
	const count = 500
	c, budget := newBudgetCluster(t, 16<<20)
	name := c.create("t", 0)
	c.subscribe(name, "s")
	c.do(c.appendBatch(name, gzipBatch(count, make([]byte, 100<<10))))
	before := budget.Stats().Opened
	for next := int64(0); next < count; {
		got, err := c.Consumer.Receive(t.Context(), name, "s", messaging.ReceiveOptions{Max: 7})
		if err != nil || len(got) == 0 {
			t.Fatalf("message %d: got %d messages, %v", next, len(got), err)
		}
		for i := range got {
			if got[i].ID.Entry != next || len(got[i].Payload) != 100<<10 {
				t.Fatalf("got message %v of %d bytes, want %d of %d", got[i].ID, len(got[i].Payload), next, 100<<10)
			}
			next++
		}
		last := messaging.Settlement{ID: got[len(got)-1].ID, Action: messaging.AckTo}
		c.do(c.Consumer.Settle(t.Context(), name, "s", last))
	}
	if opened := budget.Stats().Opened - before; opened != 1 {
		t.Errorf("the batch was decoded %d times, want once", opened)
	}
}

// TestUnpackingWaitsForOthers has consumers and producers of the same large batches at the same time,
// with a budget for few of them: all succeed.
func TestUnpackingWaitsForOthers(t *testing.T) {
	t.Parallel()
	c, budget := newBudgetCluster(t, 16<<20)
	batch := gzipBatch(3, make([]byte, 5<<20))
	failures := make(chan error)
	const callers = 5
	for i := range callers {
		name := c.create(fmt.Sprintf("t%d", i), 0)
		c.subscribe(name, "s")
		caller := fairshare.Caller{Organization: fmt.Sprint(i % 3), Principal: fmt.Sprint(i)}
		ctx := fairshare.WithCaller(t.Context(), caller)
		go func() {
			err := c.appendBatch(name, append([]byte(nil), batch...))
			for n := 0; err == nil && n < 3; n++ {
				_, err = c.consumeOne(ctx, name, "s")
			}
			failures <- err
		}()
	}
	for range callers {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	if got := budget.Stats(); got.Working != 0 || got.Rejected != 0 {
		t.Errorf("got %+v, want nothing in work and no rejected call", got)
	}
}
