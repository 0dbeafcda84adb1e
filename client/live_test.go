package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"freshet.dev/client"
)

func TestTopics(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), live(t)
	topic := c.Topic("shop.topics")
	if err := topic.Create(ctx,
		client.TopicOptions{Partitions: 2, Properties: map[string]string{"owner": "shop"}}); err != nil {
		t.Fatal(err)
	}
	if err := topic.Create(ctx, client.TopicOptions{}); !errors.Is(err, client.ErrConflict) {
		t.Errorf("second Create: got %v, want ErrConflict", err)
	}
	if err := topic.Grow(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if got := must[int](t)(topic.Partitions(ctx)); got != 3 {
		t.Errorf("partitions: got %d, want 3", got)
	}
	if err := topic.SetProperties(ctx, map[string]string{"tier": "gold"}); err != nil {
		t.Fatal(err)
	}
	if err := topic.DeleteProperty(ctx, "owner"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"tier": "gold"},
		must[map[string]string](t)(topic.Properties(ctx))); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	if err := topic.Subscription("s").Create(ctx, client.SubscriptionOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"s"}, must[[]string](t)(topic.Subscriptions(ctx))); diff != "" {
		t.Errorf("subscriptions (-want +got):\n%s", diff)
	}
	listed := must[[]client.TopicEntry](t)(c.Topics(ctx, "public/default"))
	if !slices.ContainsFunc(listed, func(e client.TopicEntry) bool {
		return strings.HasSuffix(e.Name, "shop.topics") &&
			e.Partitions == 3
	}) {
		t.Errorf("list: got %v, want it to contain shop.topics with 3 partitions", listed)
	}
	if stats := must[*client.TopicStats](t)(topic.Stats(ctx)); stats.Partitions != 3 || len(stats.Subscriptions) != 1 {
		t.Errorf("stats: got %+v", stats)
	}
	for name, h := range map[string]*client.History{
		"cluster":      must[*client.History](t)(c.History(ctx, client.LastDay)),
		"topic":        must[*client.History](t)(topic.History(ctx, client.LastDay)),
		"subscription": must[*client.History](t)(topic.Subscription("s").History(ctx, client.LastDay)),
	} {
		if h.Range != client.LastDay || h.StepSeconds != 600 || len(h.Backlog) != 144 || h.Start.IsZero() {
			t.Errorf("history of the %s: got %+v", name, h)
		}
	}
	if err := topic.Delete(ctx, true); err != nil {
		t.Fatal(err)
	}
	if _, err := topic.Stats(ctx); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("after delete: got %v, want ErrNotFound", err)
	}
	for _, bad := range []string{"", "a/b", "persistent://a/b", "http://a/b/c", "a//c"} {
		if _, err := c.Topic(bad).Partitions(ctx); err == nil {
			t.Errorf("topic %q: got no error", bad)
		}
	}
}

// TestMessageRoundTrip sets every field of a message, sends it with both produce calls, and compares it with
// the messages that Peek, Read and Messages return.
func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, c := range []struct {
		name    string
		message client.Message
	}{
		{"plain", client.Message{Value: []byte("v")}},
		{"empty", client.Message{Value: []byte{}}},
		{"everything", client.Message{
			Value: []byte{0, 255}, Key: "customer 7", Properties: map[string]string{"Source": "shöp", "a": ""},
			EventTime: time.UnixMilli(1_700_000_000_123), Sequence: new(uint64(9)),
		}},
		{"bytes", client.Message{
			Value: []byte("v"), Key: "\xff\x00",
			Headers: []client.Header{{"b", []byte{1}}, {"a", nil}, {"b", []byte{}}},
		}},
		{"null", client.Message{NullValue: true, Key: "gone"}},
		{"empty key", client.Message{Value: []byte("v"), EmptyKey: true}},
	} {
		for _, batch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/batch=%v", c.name, batch), func(t *testing.T) {
				t.Parallel()
				topic, sub := newTopic(t, strings.ReplaceAll(t.Name(), "/", "."), 0, client.SubscriptionOptions{})
				if batch {
					results := must[[]client.Result](t)(topic.ProduceBatch(ctx, []client.Message{c.message}))
					if results[0].Err != nil {
						t.Fatal(results[0].Err)
					}
				} else if _, err := topic.Produce(ctx, c.message); err != nil {
					t.Fatal(err)
				}
				seen := map[string]client.Received{}
				peeked := must[[]client.Received](t)(sub.Peek(ctx, 5))
				if len(peeked) != 1 {
					t.Fatalf("peek: got %d messages, want 1", len(peeked))
				}
				seen["peek"] = peeked[0]
				peeked, _, err := sub.PeekFilter(ctx, 5, "true")
				if err != nil || len(peeked) != 1 {
					t.Fatalf("peek with a filter: got %d messages, %v, want 1", len(peeked), err)
				}
				seen["peek with a filter"] = peeked[0]
				for received, err := range topic.TailFilter(ctx, client.Earliest, "true", nil) {
					if err != nil {
						t.Fatal(err)
					}
					seen["tail with a filter"] = *received
					break
				}
				for received, err := range topic.Read(ctx, client.Earliest) {
					if err != nil {
						t.Fatal(err)
					}
					seen["read"] = *received
				}
				for msg, err := range sub.Messages(ctx) {
					if err != nil {
						t.Fatal(err)
					}
					seen["receive"] = msg.Received
					msg.Ack()
					break
				}
				if len(seen) != 5 {
					t.Fatalf("got the message from %d calls, want 5", len(seen))
				}
				for way, got := range seen {
					compare(t, way, c.message, got.Message)
				}
			})
		}
	}
}

func compare(t *testing.T, way string, want, got client.Message) {
	t.Helper()
	if len(got.Properties) == 0 {
		got.Properties = nil
	}
	if want.Sequence == nil {
		got.Sequence = nil // the server assigned it
	}
	if want.Headers != nil {
		got.Properties = nil
	} else {
		got.Headers = nil
	}
	if len(got.Value) == 0 && len(want.Value) == 0 {
		got.Value, want.Value = nil, nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", way, diff)
	}
}

func TestIdempotencyKeyIsADuplicate(t *testing.T) {
	t.Parallel()
	topic, _ := newTopic(t, t.Name(), 0, client.SubscriptionOptions{})
	m := client.Message{Value: []byte("v"), IdempotencyKey: "order-1"}
	first := must[client.Produced](t)(topic.Produce(t.Context(), m))
	second := must[client.Produced](t)(topic.Produce(t.Context(), m))
	if second.StringID != first.StringID || !second.Duplicate || first.Duplicate {
		t.Errorf("got %+v then %+v, want the second to be a duplicate of the first", first, second)
	}
}

func TestProducerKeepsOrderAndHandlesEverything(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	topic, sub := newTopic(t, t.Name(), 4, client.SubscriptionOptions{})
	p := topic.NewProducer(client.ProducerOptions{Name: "test"})
	const count = 2000
	for i := range count {
		if err := p.Send(ctx, client.Message{Value: fmt.Append(nil, i), Key: fmt.Sprint("k", i%7)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Send(ctx, client.Message{}, nil); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
	var mu sync.Mutex
	seen := make(map[string]bool)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := sub.Handle(ctx, 8, func(_ context.Context, d *client.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[string(d.Value)] = true; len(seen) == count {
			cancel()
		}
		return nil
	})
	if err != nil || len(seen) != count {
		t.Fatalf("handled %d messages, %v, want %d", len(seen), err, count)
	}
	stats := must[client.SubscriptionStats](t)(sub.Stats(t.Context()))
	if stats.Backlog != 0 {
		t.Errorf("backlog after all messages were handled: got %d, want 0", stats.Backlog)
	}
	last := make(map[string]int)
	for received, err := range topic.Read(t.Context(), client.Earliest) {
		if err != nil {
			t.Fatal(err)
		}
		var i int
		if _, err := fmt.Sscan(string(received.Value), &i); err != nil {
			t.Fatal(err)
		}
		if before, ok := last[received.Key]; ok && before >= i {
			t.Fatalf("key %s: %d after %d", received.Key, i, before)
		}
		last[received.Key] = i
	}
}

func TestLeavingTheLoopReturnsAndAcks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	topic, sub := newTopic(t, t.Name(), 0, client.SubscriptionOptions{})
	for i := range 10 {
		must[client.Produced](t)(topic.Produce(ctx, client.Message{Value: fmt.Append(nil, i)}))
	}
	count := 0
	for msg, err := range sub.Messages(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		msg.Ack()
		if count++; count == 3 {
			break
		}
	}
	stats := must[client.SubscriptionStats](t)(sub.Stats(ctx))
	if stats.Backlog != 7 || stats.Leased != 0 {
		t.Errorf("after 3 of 10: got %d unacknowledged and %d on lease, want 7 and 0", stats.Backlog, stats.Leased)
	}
}

func TestLeaseIsExtendedWhileHeld(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	topic, sub := newTopic(t, t.Name(), 0, client.SubscriptionOptions{})
	sub.ReceiveOptions.Lease = time.Second
	must[client.Produced](t)(topic.Produce(ctx, client.Message{Value: []byte("slow")}))
	for msg, err := range sub.Messages(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		// Another consumer waits longer than two leases, and receives no message.
		others := must[[]client.Received](t)(sub.Fetch(ctx, 1, 2500*time.Millisecond, time.Second))
		if len(others) != 0 {
			t.Error("another consumer received the message while it was held")
		}
		if err := msg.AckWait(ctx); err != nil {
			t.Error(err)
		}
		break
	}
	if stats := must[client.SubscriptionStats](t)(sub.Stats(ctx)); stats.Backlog != 0 {
		t.Errorf("backlog: got %d, want 0", stats.Backlog)
	}
}

func TestHeldTooLongIsLost(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	topic, sub := newTopic(t, t.Name(), 0, client.SubscriptionOptions{})
	sub.ReceiveOptions.Lease, sub.ReceiveOptions.MaxExtension = time.Second, time.Second
	must[client.Produced](t)(topic.Produce(ctx, client.Message{Value: []byte("forgotten")}))
	var redeliveries []int
	for msg, err := range sub.Messages(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if redeliveries = append(redeliveries, msg.Redeliveries); len(redeliveries) == 2 {
			msg.Ack()
			break
		}
		<-msg.Lost()
	}
	if diff := cmp.Diff([]int{0, 1}, redeliveries); diff != "" {
		t.Errorf("redeliveries (-want +got):\n%s", diff)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	topic, sub := newTopic(t, t.Name(), 0, client.SubscriptionOptions{MaxRedeliver: new(1)})
	must[client.Produced](t)(topic.Produce(ctx, client.Message{Value: []byte("poison")}))
	attempts := 0
	for msg, err := range sub.Messages(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		msg.Nack(0)
		if attempts++; attempts == 2 {
			break
		}
	}
	dead := must[*client.Topic](t)(sub.DeadLetterTopic(ctx))
	var values []string
	// The server writes the dead letter asynchronously: Tail waits for it.
	for received, err := range dead.Tail(ctx, client.Earliest) {
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, string(received.Value)+" "+received.Properties[client.PropertyOrigin])
		break
	}
	if len(values) != 1 || !strings.HasPrefix(values[0], "poison ") || strings.Count(values[0], ":") != 3 {
		t.Errorf("dead letters: got %q, want one message with its origin", values)
	}
	for _, step := range []struct {
		options client.ReplayOptions
		matched int64
		sent    int64
	}{
		{client.ReplayOptions{DryRun: true}, 1, 0},
		{client.ReplayOptions{Filter: `payload == "other"`}, 0, 0},
		{client.ReplayOptions{Filter: `payload == "poison"`, Limit: 1}, 1, 1},
		{client.ReplayOptions{}, 0, 0},
	} {
		got, err := sub.Replay(ctx, step.options)
		if err != nil || got.Matched != step.matched || got.Replayed != step.sent {
			t.Errorf("replay with %+v: got %+v, %v, want %d matches and %d sent", step.options, got, err, step.matched,
				step.sent)
		}
	}
}

func TestSubscriptionReset(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	topic, sub := newTopic(t, t.Name(), 0, client.SubscriptionOptions{AckTimeout: 10 * time.Second})
	var ids []string
	for i := range 5 {
		ids = append(ids, must[client.Produced](t)(topic.Produce(ctx, client.Message{Value: fmt.Append(nil, i)})).ID)
	}
	backlog := func(want int64) {
		t.Helper()
		if got := must[client.SubscriptionStats](t)(sub.Stats(ctx)).Backlog; got != want {
			t.Errorf("backlog: got %d, want %d", got, want)
		}
	}
	backlog(5)
	for _, step := range []struct {
		to   client.Position
		want int64
	}{
		{client.AtID(ids[1]), 4},
		{client.AfterID(ids[1]), 3},
		{client.Latest, 0},
		{client.Earliest, 5},
		{client.AtTime(time.Now().Add(time.Hour)), 0},
		{client.AtTime(time.UnixMilli(0)), 5},
	} {
		if err := sub.Reset(ctx, step.to); err != nil {
			t.Fatal(err)
		}
		backlog(step.want)
	}
	if err := sub.AckCumulative(ctx, ids[2]); err != nil {
		t.Fatal(err)
	}
	backlog(2)
	if err := sub.SkipAll(ctx); err != nil {
		t.Fatal(err)
	}
	backlog(0)
	if got := must[map[string]string](t)(sub.Properties(ctx))["ackTimeoutMillis"]; got != "10000" {
		t.Errorf("ackTimeoutMillis: got %q, want 10000", got)
	}
	after := topic.Subscription("after")
	if err := after.Create(ctx, client.SubscriptionOptions{From: client.AfterID(ids[3])}); err != nil {
		t.Fatal(err)
	}
	if got := must[client.SubscriptionStats](t)(after.Stats(ctx)).Backlog; got != 1 {
		t.Errorf("backlog of a subscription after the fourth of five messages: got %d, want 1", got)
	}
	if err := sub.Delete(ctx, false); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Stats(ctx); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("after Delete: got %v, want ErrNotFound", err)
	}
}

func TestTailContinues(t *testing.T) {
	t.Parallel()
	topic, _ := newTopic(t, t.Name(), 2, client.SubscriptionOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 3 {
		must[client.Produced](t)(topic.Produce(ctx, client.Message{Value: fmt.Append(nil, i)}))
	}
	var got []string
	for received, err := range topic.Tail(ctx, client.Earliest) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, string(received.Value)); len(got) == 3 {
			must[client.Produced](t)(topic.Produce(ctx, client.Message{Value: []byte("3")}))
		}
		if len(got) == 4 {
			break
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"0", "1", "2", "3"}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	for _, err := range live(t).Topic("nowhere").Tail(ctx, client.Latest) {
		if !errors.Is(err, client.ErrNotFound) {
			t.Errorf("missing topic: got %v, want ErrNotFound", err)
		}
	}
}

func TestMessagesOfMissingTopicIsAnError(t *testing.T) {
	t.Parallel()
	count := 0
	for msg, err := range live(t).Topic("nowhere").Subscription("s").Messages(t.Context()) {
		if count++; msg != nil || !errors.Is(err, client.ErrNotFound) {
			t.Errorf("got %v, %v, want ErrNotFound", msg, err)
		}
	}
	if count != 1 {
		t.Errorf("the loop ran %d times, want once", count)
	}
}

func TestTopicSchema(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	topic, _ := newTopic(t, t.Name(), 0, client.SubscriptionOptions{})
	if _, err := topic.Schema(ctx); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("topic without a schema: got %v, want ErrNotFound", err)
	}
	schema := client.TopicSchema{
		Type: "JSON",
		Text: `{"type":"record","name":"R","fields":[{"name":"id","type":"long"}]}`,
	}
	if version := must[int64](t)(topic.SetSchema(ctx, schema)); version != 0 {
		t.Errorf("version: got %d, want 0", version)
	}
	if got := must[*client.TopicSchema](t)(topic.Schema(ctx)); got.Type != "JSON" || got.Version != 0 {
		t.Errorf("got %+v", got)
	}
	produced := must[client.Produced](t)(topic.Produce(ctx, client.Message{Value: []byte(`{"id":1}`)}))
	if produced.SchemaVersion == nil || *produced.SchemaVersion != 0 {
		t.Errorf("schema version: got %v, want 0", produced.SchemaVersion)
	}
	if err := topic.DeleteSchema(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), live(t)
	topic, _ := newTopic(t, t.Name(), 2, client.SubscriptionOptions{})
	for range 4 {
		must[client.Produced](t)(topic.Produce(ctx, client.Message{Value: []byte("v")}))
	}
	if err := c.ResetGroup(ctx, "", "workers", client.GroupPosition{Topic: t.Name(), At: client.Earliest}); err != nil {
		t.Fatal(err)
	}
	if h := must[*client.History](t)(c.GroupHistory(ctx, "public", "workers", client.LastHour)); len(h.Lag) != 60 {
		t.Errorf("history of the group: got %+v", h)
	}
	info := must[*client.GroupInfo](t)(c.Group(ctx, "", "workers"))
	if info.Lag != 4 || len(info.Offsets) != 2 {
		t.Errorf("got %+v, want a lag of 4 on 2 partitions", info)
	}
	groups := must[[]client.GroupEntry](t)(c.Groups(ctx, ""))
	if !slices.ContainsFunc(groups, func(g client.GroupEntry) bool { return g.Name == "workers" }) {
		t.Errorf("list: got %v, want it to contain workers", groups)
	}
	if err := c.ResetGroup(ctx, "", "workers",
		client.GroupPosition{Topic: t.Name(), Partition: new(1), Offset: new(int64(99))}); !errors.Is(err,
		client.ErrInvalid) {
		t.Errorf("offset that does not exist: got %v, want ErrInvalid", err)
	}
	if err := c.DeleteGroup(ctx, "", "workers"); err != nil {
		t.Fatal(err)
	}
}
