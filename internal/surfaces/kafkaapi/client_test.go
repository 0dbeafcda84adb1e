package kafkaapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
)

func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func publicTopic(local string) names.Topic {
	return names.Topic{Namespace: names.PublicDefault, Local: local}
}

// poll collects n records.
func poll(t *testing.T, client *kgo.Client, n int) []*kgo.Record {
	t.Helper()
	ctx := short(t)
	var got []*kgo.Record
	for len(got) < n {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(fetches.Err(), ctx.Err()); err != nil {
			t.Fatalf("after %d records: %v", len(got), err)
		}
		got = append(got, fetches.Records()...)
	}
	return got
}

// TestProduceAndConsume produces records with every codec and consumes them in a group.
func TestProduceAndConsume(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := short(t)
			topic := "orders-" + name
			producer := w.client(kgo.ProducerBatchCompression(codec), kgo.AllowAutoTopicCreation(),
				kgo.DefaultProduceTopic(topic))
			var sent []*kgo.Record
			for i := range 100 {
				r := &kgo.Record{
					Key: fmt.Append(nil, "key-", i%7), Value: []byte(strings.Repeat("value ", i)),
					Timestamp: time.UnixMilli(1700000000000 + int64(i)),
				}
				switch i {
				case 3:
					r.Key = nil
				case 4:
					r.Value = nil
				case 5:
					r.Key, r.Value = []byte{}, []byte{}
				case 6:
					r.Key = []byte{0xff, 0, 1}
					r.Headers = []kgo.RecordHeader{
						{Key: "h", Value: []byte("1")},
						{Key: "h", Value: nil},
						{Key: "\x00x", Value: []byte{0xfe}},
					}
				}
				sent = append(sent, r)
			}
			if err := producer.ProduceSync(ctx, sent...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			consumer := w.client(kgo.ConsumeTopics(topic), kgo.ConsumerGroup("g-"+name),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			got := poll(t, consumer, 100)
			for i, r := range got {
				want := sent[i]
				if r.Offset != int64(i) || string(r.Key) != string(want.Key) || (r.Key == nil) != (want.Key == nil) ||
					string(r.Value) != string(want.Value) || (r.Value == nil) != (want.Value == nil) ||
					!r.Timestamp.Equal(want.Timestamp) || len(r.Headers) != len(want.Headers) {
					t.Fatalf("record %d: got %+v, want %+v", i, r, want)
				}
			}
			if err := consumer.CommitUncommittedOffsets(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestBothInterfaces checks that HTTP and Kafka clients read each other's messages.
func TestBothInterfaces(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	broker := w.broker
	w.ok(broker.Catalogue.CreateTopic(ctx, publicTopic("shared"), messaging.NewTopic{}))
	if _, err := broker.Producer.Produce(ctx, publicTopic("shared"),
		&messaging.Message{
			Payload: []byte("by http"), Key: "k",
			Properties: []messaging.Property{{Key: "p", Value: "1"}}, SchemaVersion: messaging.NoSchema,
		}); err != nil {
		t.Fatal(err)
	}
	client := w.client(kgo.DefaultProduceTopic("shared"))
	w.ok(client.ProduceSync(ctx,
		&kgo.Record{
			Key: []byte("k"), Value: []byte("by stream"),
			Headers: []kgo.RecordHeader{{Key: "\x00producer", Value: []byte("me")}},
		}).FirstErr())

	got := poll(t, w.client(kgo.ConsumeTopics("shared")), 2)
	if string(got[0].Value) != "by http" || string(got[0].Key) != "k" || len(got[0].Headers) != 1 ||
		string(got[1].Value) != "by stream" {
		t.Errorf("client reads %v and %v, want both messages", got[0], got[1])
	}
	first, err := broker.Consumer.Message(ctx, publicTopic("shared"),
		names.MessageID{Ledger: topicNumber(t, w, "shared"), Entry: 1, Partition: -1, BatchSize: 1})
	if err != nil || string(first.Payload) != "by stream" || len(first.Properties) != 1 ||
		first.Properties[0].Key != "\x00producer" || first.Producer != "" {
		t.Errorf("over HTTP: got %+v, %v; want the record with its header", first, err)
	}
}

func topicNumber(t *testing.T, w *harness, local string) int64 {
	t.Helper()
	topic, err := w.broker.Catalogue.Topic(t.Context(), publicTopic(local))
	if err != nil {
		t.Fatal(err)
	}
	return int64(topic.ID)
}

// TestGroupRebalances checks that members share partitions, and that the remaining member continues
// the partitions of a leaving member at the committed offsets.
func TestGroupRebalances(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	if _, err := admin.CreateTopic(ctx, 4, 1, nil, "shared"); err != nil {
		t.Fatal(err)
	}
	member := func() *kgo.Client {
		return w.client(kgo.ConsumeTopics("shared"), kgo.ConsumerGroup("team"), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(50*time.Millisecond),
			kgo.SessionTimeout(6*time.Second))
	}
	producer := w.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	send := func(value string) {
		var rs []*kgo.Record
		for p := range int32(4) {
			rs = append(rs, &kgo.Record{Topic: "shared", Partition: p, Value: []byte(value)})
		}
		w.ok(producer.ProduceSync(ctx, rs...).FirstErr())
	}
	send("first")
	one := member()
	if got := poll(t, one, 4); len(got) != 4 {
		t.Fatalf("got %d records, want 4", len(got))
	}
	w.ok(one.CommitUncommittedOffsets(ctx))
	two := member()
	done := make(chan []*kgo.Record, 2)
	for _, m := range []*kgo.Client{one, two} {
		go func() {
			fetches := m.PollFetches(ctx)
			done <- fetches.Records()
		}()
	}
	deadline := time.Now().Add(15 * time.Second)
	for {
		d, err := admin.DescribeGroups(ctx, "team")
		if err != nil {
			t.Fatal(err)
		}
		if g := d["team"]; g.State == "Stable" && len(g.Members) == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("group is %+v, want stable with two members", d)
		}
	}
	send("second")
	got := append(<-done, <-done...)
	if len(got) == 0 {
		t.Error("got no records, want the records of the partitions")
	}
	for _, r := range got {
		if string(r.Value) != "second" {
			t.Errorf("got %q again, which was committed", r.Value)
		}
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	consumerToken := w.account("reader")
	w.bind("reader", "topic-consumer")
	nobodyToken := w.account("nobody")

	reader := w.clientAs(as(consumerToken), kgo.DefaultProduceTopic("orders"), kgo.DisableIdempotentWrite())
	if err := reader.ProduceSync(ctx, &kgo.Record{Value: []byte("x")}).FirstErr(); !errors.Is(err,
		kerr.TopicAuthorizationFailed) {
		t.Errorf("producing with a consumer's role: got %v, want %v", err, kerr.TopicAuthorizationFailed)
	}
	if _, err := kadm.NewClient(reader).CreateTopic(ctx, 1, 1, nil, "more"); !errors.Is(err,
		kerr.TopicAuthorizationFailed) {
		t.Errorf("creating a topic with a consumer's role: got %v, want %v", err, kerr.TopicAuthorizationFailed)
	}
	nobody := kadm.NewClient(w.clientAs(as(nobodyToken)))
	listed, err := nobody.ListTopics(ctx)
	if err != nil || len(listed) != 0 {
		t.Errorf("without a role: got %v, %v; want no topics", listed, err)
	}
	for _, name := range []string{"orders", "unknown"} {
		if _, err := nobody.ListTopics(ctx, name); !errors.Is(err, kerr.TopicAuthorizationFailed) {
			t.Errorf("%s without a role: got %v, want an error that does not reveal whether it exists", name, err)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ping := func(credentials sasl.Mechanism) error {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		return w.clientAs(credentials, kgo.RetryTimeout(time.Second)).Ping(ctx)
	}
	if err := ping(bearer(w.token)); err != nil {
		t.Errorf("OAUTHBEARER: %v", err)
	}
	if err := ping(as(w.token)); err != nil {
		t.Errorf("PLAIN without a prefix: %v", err)
	}
	for name, credentials := range map[string]sasl.Mechanism{
		"no token": as("token:"), "nonsense": as("token:abc"),
		"nonsense bearer": bearer("abc"),
	} {
		if err := ping(credentials); err == nil || !strings.Contains(err.Error(), "SASL_AUTHENTICATION_FAILED") {
			t.Errorf("%s: got %v, want SASL_AUTHENTICATION_FAILED", name, err)
		}
	}
}
