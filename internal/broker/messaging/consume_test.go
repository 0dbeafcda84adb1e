package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/internal/storage/engine"
)

func TestProduceConsumeAck(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	sent := &messaging.Message{
		Payload: []byte("hello"), Key: "k", EventTime: 1234, SchemaVersion: messaging.NoSchema,
		Properties: []messaging.Property{{Key: "a", Value: "1"}, {Key: "ä", Value: "ü"}},
		Sequence:   42, HasSequence: true, Producer: "p",
	}
	produced := c.produce(name, sent)
	if produced.ID.Partition != -1 || produced.ID.Entry != 0 || produced.ID.Batch != 0 || produced.Duplicate {
		t.Errorf("produced %+v", produced)
	}
	got := c.receiveOne(name, "s")
	if got.ID != produced.ID || string(got.Payload) != "hello" || got.Key != "k" || got.EventTime != 1234 ||
		got.Sequence != 42 || got.Producer != "p" || !slices.Equal(got.Properties, sent.Properties) ||
		got.Redeliveries != 0 || got.PublishTime == 0 || got.SchemaVersion != messaging.NoSchema {
		t.Errorf("received %+v", got)
	}
	c.ack(name, "s", got.ID, got.ID)
	if rest := c.receive(name, "s", 10); len(rest) != 0 {
		t.Errorf("after the ack: %v", rest)
	}
}

func TestSequenceFallsBackToEntry(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	c.produce(name, text("a"))
	c.produce(name, text("b"))
	for i, got := range c.receive(name, "s", 2) {
		if got.Sequence != uint64(i) || got.HasSequence {
			t.Errorf("message %d has sequence %d, HasSequence %v", i, got.Sequence, got.HasSequence)
		}
	}
}

func TestProduceAndConsumeDoNotCreateTopics(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	_, err := c.Producer.Produce(ctx, topic("none"), text("a"))
	wantErr(t, err, messaging.ErrNoTopic)
	_, err = c.Consumer.Receive(ctx, topic("none"), "s", messaging.ReceiveOptions{})
	wantErr(t, err, messaging.ErrNoTopic)
	c.create("orders", 2)
	_, err = c.Consumer.Receive(ctx, topic("orders"), "s", messaging.ReceiveOptions{})
	wantErr(t, err, messaging.ErrNoSubscription)
	_, err = c.Producer.Produce(ctx, topic("orders-partition-2"), text("a"))
	wantErr(t, err, messaging.ErrNoTopic)
	err = c.Consumer.Settle(ctx, topic("orders"), "s",
		messaging.Settlement{ID: names.MessageID{Ledger: 1, Partition: -1}})
	wantErr(t, err, messaging.ErrForeignID)
}

func TestPartitionedTopicIsDrained(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 4)
	c.subscribe(name, "s")
	want := map[string]bool{}
	partitions := map[int32]int{}
	for i := range 40 {
		payload := strconv.Itoa(i)
		want[payload] = true
		partitions[c.produce(name, text(payload)).ID.Partition]++
	}
	for p := range int32(4) {
		if partitions[p] != 10 {
			t.Errorf("partition %d got %d messages, want 10", p, partitions[p])
		}
	}
	for _, got := range c.receive(name, "s", 100) {
		delete(want, string(got.Payload))
		c.ack(name, "s", got.ID)
	}
	if len(want) != 0 {
		t.Errorf("not received: %v", want)
	}
}

func TestKeysStayTogether(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 4)
	for key, partition := range map[string]int32{"a": 2, "key-1": 0, "order-42": 2} {
		m := text("x")
		m.Key = key
		if got := c.produce(name, m).ID.Partition; got != partition {
			t.Errorf("key %s went to partition %d, want %d", key, got, partition)
		}
	}
}

func TestOnePartitionByName(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 3)
	one := name.WithPartition(1)
	c.subscribe(one, "s")
	if got := c.produce(one, text("a")).ID.Partition; got != 1 {
		t.Errorf("went to partition %d", got)
	}
	c.produce(name.WithPartition(2), text("b"))
	got := c.receive(one, "s", 10)
	if len(got) != 1 || string(got[0].Payload) != "a" {
		t.Errorf("got %v", got)
	}
	other := got[0].ID
	other.Partition = 2
	err := c.Consumer.Settle(t.Context(), one, "s", messaging.Settlement{ID: other, Action: messaging.Ack})
	wantErr(t, err, messaging.ErrForeignID)
}

func TestSettlements(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	var ids []names.MessageID
	for i := range 4 {
		ids = append(ids, c.produce(name, text(strconv.Itoa(i))).ID)
	}
	c.receive(name, "s", 4)
	c.do(c.Consumer.Settle(ctx, name, "s", messaging.Settlement{ID: ids[3], Action: messaging.Nack}))
	back := c.receiveOne(name, "s")
	if back.ID.Entry != 3 || back.Redeliveries != 1 || back.ID.Redeliveries != 1 {
		t.Errorf("after the nack: %+v", back)
	}
	c.do(c.Consumer.Settle(ctx, name, "s", messaging.Settlement{ID: ids[2], Action: messaging.AckTo}))
	stats, err := c.Statistics.Stats(ctx, name)
	c.do(err)
	if s := stats.Subscriptions[0]; s.Backlog != 1 || s.Leased != 1 {
		t.Errorf("after the cumulative ack: %+v", s)
	}
	for _, tc := range []struct {
		name string
		s    messaging.Settlement
		want error
	}{
		{"negative", messaging.Settlement{ID: names.EarliestID}, messaging.ErrMessageID},
		{"foreign", messaging.Settlement{ID: names.MessageID{Ledger: 999, Partition: -1}}, messaging.ErrForeignID},
		{
			"other partition",
			messaging.Settlement{ID: names.MessageID{Ledger: ids[0].Ledger, Partition: 1}},
			messaging.ErrForeignID,
		},
		{
			"not yet",
			messaging.Settlement{ID: names.MessageID{Ledger: ids[0].Ledger, Entry: 99, Partition: -1}},
			messaging.ErrNoMessage,
		},
		{
			"lease too short",
			messaging.Settlement{ID: ids[3], Action: messaging.Extend, Delay: time.Millisecond},
			engine.ErrInvalid,
		},
		{"no lease", messaging.Settlement{ID: ids[3], Action: messaging.Extend}, engine.ErrInvalid},
		{"negative delay", messaging.Settlement{ID: ids[3], Action: messaging.Nack, Delay: -1}, engine.ErrInvalid},
	} {
		if err := c.Consumer.Settle(ctx, name, "s", tc.s); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
	}
	wantErr(t, c.Consumer.Settle(ctx, name, "s"), messaging.ErrBatch)
	wantErr(t, c.Consumer.Settle(ctx, name, "nobody", messaging.Settlement{ID: ids[0]}), messaging.ErrNoSubscription)
}

func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Limits: messaging.Limits{MinLease: time.Millisecond}})
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	c.produce(name, text("a"))
	ctx := t.Context()
	_, err := c.Consumer.Receive(ctx, name, "s", messaging.ReceiveOptions{Lease: 20 * time.Millisecond})
	c.do(err)
	again := c.receiveOne(name, "s") // waits for the lease to end
	if again.Redeliveries != 1 {
		t.Errorf("got %+v", again)
	}
	_, err = c.Consumer.Receive(ctx, name, "s", messaging.ReceiveOptions{Lease: 13 * time.Hour})
	wantErr(t, err, engine.ErrInvalid)
}

func TestDeduplication(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 3)
	c.subscribe(name, "s")
	numbered := func(payload string) *messaging.Message {
		m := text(payload)
		m.Producer, m.Sequence, m.HasSequence = "p", 7, true
		return m
	}
	// Deduplication is off by default: the sequence number is plain metadata.
	if c.produce(name, numbered("a")).Duplicate || c.produce(name, numbered("b")).Duplicate {
		t.Error("got a duplicate, want none while deduplication is off")
	}
	for _, m := range c.receive(name, "s", 10) {
		if m.Producer != "p" || m.Sequence != 7 || len(m.Properties) != 0 {
			t.Errorf("got %+v", m)
		}
	}
	on := true
	c.do(c.Catalogue.UpdateNamespace(ctx, names.PublicDefault, func(p *messaging.Policies) error {
		p.Deduplicate = &on
		return nil
	}))
	first := c.produce(name, numbered("c"))
	second := c.produce(name, numbered("d"))
	if first.Duplicate || !second.Duplicate || second.ID != first.ID {
		t.Errorf("got %+v and %+v", first, second)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 3)
	c.subscribe(name, "s")
	keyed := func(key string) *messaging.Message {
		m := text("x")
		m.IdempotencyKey, m.Sequence, m.HasSequence, m.Producer = key, 5, true, "p"
		m.Properties = []messaging.Property{{Key: "a", Value: "b"}}
		return m
	}
	var wg sync.WaitGroup
	ids := make([]names.MessageID, 8)
	for i := range ids {
		wg.Go(func() {
			p, err := c.Producer.Produce(t.Context(), name, keyed("one"))
			if err != nil {
				t.Error(err)
			}
			ids[i] = p.ID
		})
	}
	wg.Wait()
	for _, id := range ids[1:] {
		if id != ids[0] {
			t.Fatalf("one key made two messages: %v", ids)
		}
	}
	if c.produce(name, keyed("two")).Duplicate {
		t.Error("got a duplicate, want a new message for another key")
	}
	got := c.receive(name, "s", 10)
	if len(got) != 2 {
		t.Fatalf("got %d messages, want 2", len(got))
	}
	if m := got[0]; m.Producer != "p" || m.Sequence != 5 || !m.HasSequence || len(m.Properties) != 1 ||
		m.IdempotencyKey != "" {
		t.Errorf("got %+v", m)
	}
}

func TestDelayedDelivery(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	late := text("late")
	late.DeliverAt = time.Now().Add(100 * time.Millisecond).UnixMilli()
	c.produce(name, late)
	c.produce(name, text("now"))
	if got := c.receiveOne(name, "s"); string(got.Payload) != "now" {
		t.Errorf("first message is %q, want now", got.Payload)
	}
	if got := c.receiveOne(name, "s"); string(got.Payload) != "late" || time.Now().UnixMilli() < late.DeliverAt {
		t.Errorf("second message is %q, want late at its delivery time", got.Payload)
	}
	late.DeliverAt = time.Now().Add(1000 * 24 * time.Hour).UnixMilli()
	_, err := c.Producer.Produce(ctx, name, late)
	wantErr(t, err, messaging.ErrMessage)
	off := false
	c.do(c.Catalogue.UpdateTopic(ctx, name, func(p *messaging.Policies) error {
		p.DelayedDelivery = &off
		return nil
	}))
	late.DeliverAt = time.Now().Add(time.Second).UnixMilli()
	_, err = c.Producer.Produce(ctx, name, late)
	wantErr(t, err, messaging.ErrNoDelay)
}

// TestDeadLettersOfRecords checks that a Kafka record may have headers of any name, and that its
// dead letter keeps them.
func TestDeadLettersOfRecords(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	c.do(c.Consumer.Subscribe(ctx, name, "s", messaging.Position{Kind: messaging.Earliest},
		map[string]string{messaging.PropertyMaxRedeliver: "0"}))
	dead := topic("orders-s-DLQ")
	c.subscribe(dead, "dead-letter-reader")
	builder := records.NewBuilder(nil, 0)
	odd := []string{"\x00producer", "\x00x", "a b\r\n", "", "ORIGIN_MESSAGE_ID"}
	var headers []records.Header
	for _, key := range odd {
		headers = append(headers, records.Header{Key: []byte(key), Value: []byte("v" + key)})
	}
	builder.Add(&records.Record{Value: []byte("poison"), Headers: headers})
	stream, err := c.Kafka.KafkaTopic(ctx, name)
	c.do(err)
	appended, err := stream.Append(ctx, 0, builder.Finish(), messaging.Sender{})
	c.do(err)
	c.do(appended.Wait(ctx))
	got := c.receiveOne(name, "s")
	c.do(c.Consumer.Settle(ctx, name, "s", messaging.Settlement{ID: got.ID, Action: messaging.Nack}))
	letter := c.receiveOne(dead, "dead-letter-reader")
	if len(letter.Properties) != len(odd)+1 || letter.Properties[0].Key != "ORIGIN_MESSAGE_ID" ||
		letter.Properties[0].Value != got.ID.String() {
		t.Fatalf("got %+v, want the origin %s and %q", letter.Properties, got.ID, odd)
	}
	for i, key := range odd {
		if p := letter.Properties[i+1]; p.Key != key || p.Value != "v"+key {
			t.Errorf("header %d: got %+v, want %q", i, p, key)
		}
	}
	if letter.Producer != "" || string(letter.Payload) != "poison" {
		t.Errorf("got producer %q and payload %q, want none and poison", letter.Producer, letter.Payload)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	c.do(c.Consumer.Subscribe(ctx, name, "s", messaging.Position{Kind: messaging.Earliest}, map[string]string{
		messaging.PropertyMaxRedeliver: "1", "mine": "too",
	}))
	dead := topic("orders-s-DLQ")
	c.subscribe(dead, "dead-letter-reader")
	c.produce(name, text("poison"))
	for range 2 {
		got := c.receiveOne(name, "s")
		c.do(c.Consumer.Settle(ctx, name, "s", messaging.Settlement{ID: got.ID, Action: messaging.Nack}))
	}
	if got := c.receiveOne(dead, "dead-letter-reader"); string(got.Payload) != "poison" {
		t.Errorf("got %q", got.Payload)
	}
	if rest := c.receive(name, "s", 1); len(rest) != 0 {
		t.Errorf("subscription still has the message: %v", rest)
	}
	if p, err := c.Consumer.SubscriptionProperties(ctx, name, "s"); err != nil || p["mine"] != "too" ||
		p[messaging.PropertyMaxRedeliver] != "1" {
		t.Errorf("properties %v, %v", p, err)
	}
	for _, bad := range []map[string]string{
		{messaging.PropertyMaxRedeliver: "x"},
		{messaging.PropertyDeadLetterTopic: "elsewhere"},
		{messaging.PropertyMaxRedeliver: "1", messaging.PropertyDeadLetterTopic: "orders"},
		{messaging.PropertyMaxRedeliver: "1", messaging.PropertyDeadLetterTopic: "acme/sales/dead"},
		{messaging.PropertyAckTimeout: "soon"},
	} {
		if err := c.Consumer.SetSubscriptionProperties(ctx, name, "s", bad); err == nil {
			t.Errorf("got no error for %v, want one", bad)
		}
	}
}

func TestDrainEndsWaiting(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	done := make(chan error, 1)
	go func() {
		got, err := c.Consumer.Receive(t.Context(), name, "s", messaging.ReceiveOptions{Wait: time.Minute})
		if len(got) > 0 {
			err = fmt.Errorf("received %v", got)
		}
		done <- err
	}()
	c.Drain()
	if err := <-done; err != nil {
		t.Errorf("got %v, want nothing and no error", err)
	}
	c.produce(name, text("a")) // all calls but waiting still work
	if got := c.receive(name, "s", 1); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestCancelledConsumerLosesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Consumer.Receive(ctx, name, "s", messaging.ReceiveOptions{Wait: time.Minute})
		done <- err
	}()
	cancel()
	wantErr(t, <-done, context.Canceled)
	c.produce(name, text("a"))
	_, err := c.Consumer.Receive(cancelled(), name, "s", messaging.ReceiveOptions{})
	wantErr(t, err, context.Canceled)
	got := c.receive(name, "s", 1)
	if len(got) != 1 || got[0].Redeliveries != 0 {
		t.Errorf("got %+v", got)
	}
	c.do(c.Consumer.ReleaseLeases(name, "s", got))
	if got := c.receive(name, "s", 1); len(got) != 1 {
		t.Errorf("after releasing the lease: got %+v, want one message", got)
	}
}

func TestWaitingConsumersAreBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Limits: messaging.Limits{MaxWaiting: 1}})
	name := c.create("orders", 0)
	c.subscribe(name, "s")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := c.Consumer.Receive(ctx, name, "s", messaging.ReceiveOptions{Wait: time.Minute})
			results <- err
		}()
	}
	wantErr(t, <-results, messaging.ErrTooMany)
	cancel()
	wantErr(t, <-results, context.Canceled)
}

func TestMessageBounds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("orders", 0)
	limit := 10
	c.do(c.Catalogue.UpdateTopic(ctx, name, func(p *messaging.Policies) error {
		p.MaxMessageBytes = &limit
		return nil
	}))
	for _, tc := range []struct {
		name string
		edit func(*messaging.Message)
		want error
	}{
		{"fits", func(*messaging.Message) {}, nil},
		{"too large", func(m *messaging.Message) { m.Payload = make([]byte, 11) }, messaging.ErrTooLarge},
		{"negative time", func(m *messaging.Message) { m.EventTime = -1 }, messaging.ErrMessage},
		{
			"property without a name", func(m *messaging.Message) { m.Properties = []messaging.Property{{Null: true}} },
			nil,
		},
		{
			"hidden property", func(
				m *messaging.Message,
			) {
				m.Properties = []messaging.Property{{Key: "\x00producer"}}
			},
			messaging.ErrMessage,
		},
		{"long property", func(m *messaging.Message) {
			m.Properties = []messaging.Property{{Key: "k", Value: string(make([]byte, 20<<10))}}
		}, messaging.ErrMessage},
		{"odd producer", func(m *messaging.Message) { m.Producer = "\x00key:x" }, messaging.ErrMessage},
		{"schema of a topic without", func(m *messaging.Message) { m.SchemaVersion = 0 }, messaging.ErrNoSchema},
	} {
		m := text("x")
		tc.edit(m)
		if _, err := c.Producer.Produce(ctx, name, m); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
	}
}
