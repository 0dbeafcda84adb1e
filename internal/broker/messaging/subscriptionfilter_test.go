package messaging_test

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// subscribeFiltered creates a subscription with a filter at the beginning of the topic.
func (c *cluster) subscribeFiltered(name names.Topic, sub, text string) {
	c.t.Helper()
	c.do(c.Consumer.Subscribe(c.t.Context(), name, sub, messaging.Position{Kind: messaging.Earliest},
		map[string]string{messaging.PropertyFilter: text}))
}

func payloadsOf(received []messaging.Received) []string {
	out := []string{}
	for i := range received {
		out = append(out, string(received[i].Payload))
	}
	return out
}

// receiveAll receives until only leased messages are left.
func (c *cluster) receiveAll(name names.Topic, sub string) (got []messaging.Received) {
	c.t.Helper()
	for {
		got = append(got, c.receive(name, sub, 10)...)
		if s := c.subStats(name, sub); s.Backlog == s.Leased {
			return got
		}
	}
}

func (c *cluster) subStats(name names.Topic, sub string) messaging.SubscriptionStats {
	c.t.Helper()
	stats, err := c.Statistics.Stats(c.t.Context(), name)
	c.do(err)
	for i := range stats.Subscriptions {
		if stats.Subscriptions[i].Name == sub {
			return stats.Subscriptions[i]
		}
	}
	c.t.Fatalf("got no statistics of subscription %s", sub)
	return messaging.SubscriptionStats{}
}

func TestSubscriptionFilter(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 0)
	c.subscribeFiltered(name, "s", "payload.n >= 2")
	c.subscribe(name, "all")
	for _, payload := range []string{`{"n":1}`, `{"n":2}`, `not JSON`, `{"n":0}`, `{"m":1}`, `{"n":3}`} {
		c.produce(name, text(payload))
	}
	want := []string{`{"n":2}`, `not JSON`, `{"m":1}`, `{"n":3}`}
	got := c.receiveAll(name, "s")
	if !slices.Equal(payloadsOf(got), want) {
		t.Errorf("got %q, want %q", payloadsOf(got), want)
	}
	if n := len(c.receiveAll(name, "all")); n != 6 {
		t.Errorf("a subscription without a filter: got %d messages, want 6", n)
	}
	stats := c.subStats(name, "s")
	if stats.Filtered != (engine.FilterCounts{Selected: 4, PassedOver: 2, Failed: 2}) || stats.Backlog != 4 ||
		stats.Config.Filter != "payload.n >= 2" {
		t.Errorf("got %+v, want 4 selected, 2 of them after a failure, 2 passed over and a backlog of 4", stats)
	}
	if usage := c.usage(true); usage.ByNamespace[0].PassedOver != 2 || usage.ByTopic[0].PassedOver != 2 {
		t.Errorf("got the usage %+v, want 2 messages passed over", usage)
	}
	properties, err := c.Consumer.SubscriptionProperties(t.Context(), name, "s")
	if err != nil || properties[messaging.PropertyFilter] != "payload.n >= 2" {
		t.Errorf("got the properties %v, %v, want the filter", properties, err)
	}
}

// TestChangeSubscriptionFilter changes a filter in both ways, and checks that refused changes change nothing.
func TestChangeSubscriptionFilter(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	ctx := t.Context()
	name := c.create("t", 0)
	c.do(c.Consumer.Subscribe(ctx, name, "s", messaging.Position{Kind: messaging.Earliest},
		map[string]string{"color": "red", messaging.PropertyAckTimeout: "5000"}))
	c.do(c.Consumer.SetSubscriptionFilter(ctx, name, "s", `key == "a"`))
	for _, bad := range []string{"payload.", "1 + 1", "nothing", strings.Repeat("(", 100), strings.Repeat("x", 5000)} {
		err := c.Consumer.SetSubscriptionFilter(ctx, name, "s", bad)
		wantErr(t, err, filter.ErrExpression)
		if errs.KindOf(err) != errs.Invalid {
			t.Errorf("%.20q: got the kind %v, want Invalid", bad, errs.KindOf(err))
		}
		bad := map[string]string{messaging.PropertyFilter: bad}
		wantErr(t, c.Consumer.SetSubscriptionProperties(ctx, name, "s", bad), filter.ErrExpression)
		wantErr(t, c.Consumer.Subscribe(ctx, name, "other", messaging.Position{}, bad), filter.ErrExpression)
	}
	wantErr(t, c.Consumer.SetSubscriptionFilter(ctx, name, "missing", "true"), messaging.ErrNoSubscription)
	want := map[string]string{
		"color": "red", messaging.PropertyAckTimeout: "5000", messaging.PropertyFilter: `key == "a"`,
	}
	properties, err := c.Consumer.SubscriptionProperties(ctx, name, "s")
	if err != nil || !maps.Equal(properties, want) {
		t.Errorf("got the properties %v, %v, want %v", properties, err, want)
	}
	if config := c.subStats(name, "s").Config; config.Lease != 5*time.Second || config.Filter != `key == "a"` {
		t.Errorf("got the configuration %+v, want the lease and the filter", config)
	}
	for _, key := range []string{"b", "a"} {
		c.produce(name, &messaging.Message{Key: key, Payload: []byte(key), SchemaVersion: messaging.NoSchema})
	}
	if got := payloadsOf(c.receiveAll(name, "s")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q, want a", got)
	}
	c.do(c.Consumer.SetSubscriptionFilter(ctx, name, "s", ""))
	c.produce(name, text("c"))
	if got := payloadsOf(c.receiveAll(name, "s")); !slices.Equal(got, []string{"c"}) {
		t.Errorf("without the filter: got %q, want c", got)
	}
	c.do(c.Consumer.SetSubscriptionProperties(ctx, name, "s", map[string]string{messaging.PropertyFilter: ""}))
	if properties, err := c.Consumer.SubscriptionProperties(ctx, name, "s"); err != nil || len(properties) != 0 {
		t.Errorf("an empty filter: got the properties %v, %v, want none", properties, err)
	}
}

// TestSubscriptionFilterWithSchemas decodes payloads with the topic's schema, also one that it gets later.
func TestSubscriptionFilterWithSchemas(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 2)
	addSchema := func(fields string) {
		_, err := c.Schemas.Add(t.Context(), name, messaging.Schema{
			Type: messaging.SchemaAvro, Text: `{"type":"record","name":"R","fields":[` + fields + `]}`,
		}, true)
		c.do(err)
	}
	addSchema(`{"name":"s","type":"string"}`)
	c.subscribeFiltered(name, "s", `payload.s == "abd"`)
	c.subscribeFiltered(name, "later", `payload.t == 1`)
	c.produce(name, text("\x06abc"))
	c.produce(name, text("\x06abd"))
	if got := c.receiveOne(name, "s"); string(got.Payload) != "\x06abd" {
		t.Errorf("got %q, want abd", got.Payload)
	}
	addSchema(`{"name":"s","type":"string"},{"name":"t","type":"int","default":0}`)
	c.produce(name, text("\x06abd\x02"))
	c.produce(name, text("\x06abd\x04"))
	got := map[string]bool{}
	for range 3 { // the first two have no field t, and the third matches
		got[string(c.receiveOne(name, "later").Payload)] = true
	}
	if !got["\x06abc"] || !got["\x06abd"] || !got["\x06abd\x02"] {
		t.Errorf("got %q, want the messages without t and the one with t=1", slices.Collect(maps.Keys(got)))
	}
}

// TestSubscriptionOfEarlierVersion: a property with the name filter that an earlier version stored is not a
// filter, and a stored filter that this version cannot compile loses no message.
func TestSubscriptionOfEarlierVersion(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 0)
	found, err := c.Catalogue.Topic(t.Context(), name)
	c.do(err)
	id := engine.TopicID(found.ID)
	for sub, config := range map[string]engine.SubscriptionConfig{
		"property":   {Properties: map[string]string{"filter": "size > 100"}},
		"uncompiled": {Filter: "of another version"},
	} {
		c.do(c.engine.CreateSubscription(t.Context(), id, sub, config, engine.Position{}))
		c.produce(name, text("a"))
		if got := c.receiveOne(name, sub); string(got.Payload) != "a" {
			t.Errorf("%s: got %q, want a", sub, got.Payload)
		}
	}
	if got := c.subStats(name, "uncompiled").Filtered; got != (engine.FilterCounts{Selected: 1, Failed: 1}) {
		t.Errorf("got %+v, want one failure", got)
	}
}

// TestFilteredReceiveIsBounded passes over many messages: no call takes much longer than its wait, and each one
// continues where the one before has ended.
func TestFilteredReceiveIsBounded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 0)
	c.subscribeFiltered(name, "s", "payload == 1")
	const messages = 20_000
	batch := make([]messaging.Message, 1000)
	for i := range batch {
		batch[i] = messaging.Message{Payload: []byte("0"), SchemaVersion: messaging.NoSchema}
	}
	for range messages / len(batch) {
		_, err := c.Producer.ProduceBatch(t.Context(), name, batch)
		c.do(err)
	}
	calls := 0
	for before := uint64(messages); before > 0; calls++ {
		got := c.receive(name, "s", 1)
		after := c.subStats(name, "s").Backlog
		if len(got) > 0 || after >= before {
			t.Fatalf("got %d messages and a backlog of %d after %d, want none and a smaller one", len(got), after,
				before)
		}
		before = after
	}
	t.Logf("%d messages were passed over in %d calls", messages, calls)
	c.produce(name, text("1"))
	if got := c.receiveOne(name, "s"); string(got.Payload) != "1" || got.Redeliveries != 0 {
		t.Errorf("got %q with %d redeliveries, want 1 with none", got.Payload, got.Redeliveries)
	}
}

// TestFilteredReceiveWaitsForProcessor: while others use all permits for scans, a consumer gets nothing, and
// loses nothing. A subscription without a filter needs no permit.
func TestFilteredReceiveWaitsForProcessor(t *testing.T) {
	t.Parallel()
	pool := workpool.New()
	c := newCluster(t, messaging.Options{Pool: pool})
	name := c.create("t", 0)
	c.subscribeFiltered(name, "s", "payload == 1")
	c.subscribe(name, "all")
	c.produce(name, text("0"))
	c.produce(name, text("1"))
	release := make(chan struct{})
	var work, begun sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)/2) { // all permits for scans
		begun.Add(1)
		work.Go(func() {
			_ = pool.Slice(t.Context(), func() error {
				begun.Done()
				<-release
				return nil
			})
		})
	}
	begun.Wait()
	got, err := c.Consumer.Receive(t.Context(), name, "s", messaging.ReceiveOptions{Wait: 20 * time.Millisecond})
	if err != nil || len(got) != 0 {
		t.Errorf("without a permit: got %d messages, %v, want none", len(got), err)
	}
	if got := c.receive(name, "all", 10); len(got) != 2 {
		t.Errorf("without a filter: got %d messages, want 2", len(got))
	}
	close(release)
	work.Wait()
	if got := c.receiveOne(name, "s"); string(got.Payload) != "1" || got.Redeliveries != 0 {
		t.Errorf("got %q with %d redeliveries, want 1 with none", got.Payload, got.Redeliveries)
	}
}

// TestFilteredPushConsumer: a push consumer gets the selected messages only.
func TestFilteredPushConsumer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 3)
	c.subscribeFiltered(name, "s", "payload % 10 == 0")
	consumer, err := c.Consumer.OpenPushConsumer(t.Context(), name, "s", messaging.PushConsumerOptions{})
	c.do(err)
	defer consumer.Close()
	for i := range 100 {
		c.produce(name, text(fmt.Sprint(i)))
	}
	seen := map[string]bool{}
	for len(seen) < 10 {
		got, err := consumer.Next(t.Context(), 10*time.Second)
		c.do(err)
		for _, payload := range payloadsOf(got) {
			if seen[payload] || !strings.HasSuffix(payload, "0") {
				t.Errorf("got %s twice or although the filter does not select it", payload)
			}
			seen[payload] = true
		}
	}
}

// TestAttackCostlyFilterOfSubscription sets expressions that would cost too much, and consumes messages for
// which the evaluation exceeds its limits: these are delivered.
func TestAttackCostlyFilterOfSubscription(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 0)
	c.subscribeFiltered(name, "s", `payload.n.exists(x, x == 2) || payload.n.exists(x, x == 3)`)
	for _, costly := range []string{
		`headers.all(a, headers.all(b, headers.all(c, a == b)))`,
		`payload.matches(payload)`,
		`key.matches("(x{1,1000}){1,1000}")`,
		strings.Repeat("key + ", 20) + `key == ""`,
	} {
		err := c.Consumer.SetSubscriptionFilter(t.Context(), name, "s", costly)
		if !errors.Is(err, filter.ErrExpression) {
			t.Errorf("%s: got %v, want it to be refused", costly, err)
		}
	}
	c.produce(name, text(`{"n":[`+strings.Repeat("1,", 200_000)+`1]}`))
	c.produce(name, text(`{"n":[1]}`))
	c.produce(name, text(`{"n":[2]}`))
	got := []messaging.Received{c.receiveOne(name, "s"), c.receiveOne(name, "s")}
	if len(got[0].Payload) < 1000 || string(got[1].Payload) != `{"n":[2]}` {
		t.Errorf("got %.60q, want the costly message and the match", payloadsOf(got))
	}
	if got := c.subStats(name, "s").Filtered; got != (engine.FilterCounts{Selected: 2, PassedOver: 1, Failed: 1}) {
		t.Errorf("got %+v, want one failure, one match and one message passed over", got)
	}
}

// TestSubscriptionFilterOfKafkaRecords evaluates records of plain and compressed batches one by one.
func TestSubscriptionFilterOfKafkaRecords(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{})
	name := c.create("t", 0)
	c.subscribeFiltered(name, "s", `key == "k1" && payload.n < 100`)
	c.do(c.appendBatch(name, kafkaBatch([]byte(`{"n":1}`), []byte(`{"n":2}`), []byte(`{"n":3}`))))
	c.do(c.appendBatch(name, compressBatch(kafkaBatch([]byte(`{"n":4}`), []byte(`{"n":5}`)))))
	c.do(c.appendBatch(name, compressBatch(kafkaBatch([]byte(`{"n":6}`), []byte(`{"n":600}`)))))
	if got := payloadsOf(c.receiveAll(name, "s")); !slices.Equal(got, []string{`{"n":2}`, `{"n":5}`}) {
		t.Errorf("got %q, want the records with the key k1 and n below 100", got)
	}
	got := c.subStats(name, "s")
	if got.Filtered != (engine.FilterCounts{Selected: 2, PassedOver: 5}) || got.Backlog != 2 {
		t.Errorf("got %+v, want 2 selected, 5 passed over and a backlog of 2", got)
	}
}

// BenchmarkPassOver measures how fast messages are passed over. An operation is one message.
func BenchmarkPassOver(b *testing.B) {
	c := newCluster(b, messaging.Options{})
	name := c.create("t", 0)
	c.subscribeFiltered(name, "s", `payload.total > 100`)
	batch := make([]messaging.Message, 1000)
	for i := range batch {
		payload := `{"id":"` + strings.Repeat("x", 900) + `","total":5}`
		batch[i] = messaging.Message{Payload: []byte(payload), SchemaVersion: messaging.NoSchema}
	}
	for n := 0; n < b.N; n += len(batch) {
		_, err := c.Producer.ProduceBatch(b.Context(), name, batch)
		c.do(err)
	}
	b.ResetTimer()
	for c.subStats(name, "s").Backlog > 0 {
		_, err := c.Consumer.Receive(b.Context(), name, "s", messaging.ReceiveOptions{Wait: 10 * time.Millisecond})
		c.do(err)
	}
}
