package kafkaapi_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/messaging/messagingtest"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/test/tally"
)

// TestAttackSquattedName has a topic of public/default with the name by which Kafka clients address a topic of
// another namespace, from a version that allowed it. The records of these clients must reach the other
// namespace, and the topic of public/default must stay reachable by its full name.
func TestAttackSquattedName(t *testing.T) {
	t.Parallel()
	eng, err := pebbletest.OpenMemoryWith(messaging.Splitter{})
	if err != nil {
		t.Fatal(err)
	}
	w := newHarnessOn(t, eng)
	squatted := w.createTopic("public", "default", "pay.prod.orders", 1)
	w.ok(messagingtest.ShadowTopics(t.Context(), eng, "pay/prod"))
	w.ok(w.broker.Catalogue.CreateTenant(t.Context(), messaging.Tenant{Name: "pay"}))
	// The first name has no topic yet: the client must not get the topic of public/default for it either.
	r := w.wire(w.token)
	attempts, successes := 0, 0
	if row := r.metadata(12, kmsg.StringPtr("pay.prod.orders"), [16]byte{}); row.ErrorCode == 0 {
		successes++
	}
	attempts++
	orders := w.createTopic("pay", "prod", "orders", 2)

	client := w.client()
	for range 10 {
		attempts++
		w.ok(client.ProduceSync(short(t), &kgo.Record{Topic: "pay.prod.orders", Value: []byte("x")}).FirstErr())
	}
	records := func(topic names.Topic) (n uint64) {
		found, err := w.broker.Kafka.KafkaTopic(t.Context(), topic)
		w.ok(err)
		extents, err := found.Extents(t.Context())
		w.ok(err)
		for _, e := range extents {
			n += e.Next - e.First
		}
		return n
	}
	successes += int(records(squatted)) //nolint:gosec // at most 10
	if got := records(orders); got != 10 {
		t.Errorf("pay/prod/orders: got %d records, want 10", got)
	}
	tally.Attack(t, "receive the records of a namespace under its dotted name", attempts, successes)
	if row := r.metadata(12, kmsg.StringPtr(squatted.String()), [16]byte{}); len(row.Partitions) != 1 {
		t.Errorf("%s: got code %d and %d partitions, want 1", squatted, row.ErrorCode, len(row.Partitions))
	}
}

// TestDottedNamesOfOtherTools creates topics with dots, for which no namespace exists, and one whose name in its
// namespace begins with that of another.
func TestDottedNamesOfOtherTools(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	r := w.wire(w.token)
	create := func(name string, validate bool) int16 {
		request := kmsg.NewPtrCreateTopicsRequest()
		request.Version, request.ValidateOnly = 7, validate
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions = name, 1
		request.Topics = append(request.Topics, topic)
		return roundTrip[*kmsg.CreateTopicsResponse](r, request).Topics[0].ErrorCode
	}
	const name = "dbserver1.inventory.customers"
	if code := create(name, false); code != 0 {
		t.Fatalf("%s: got code %d, want 0", name, code)
	}
	if row := r.metadata(12, kmsg.StringPtr("persistent://public/default/"+name), [16]byte{}); row.ErrorCode != 0 {
		t.Errorf("%s: got code %d, want a topic of public/default", name, row.ErrorCode)
	}
	w.createTopic("pay", "prod", "orders", 1)
	for _, validate := range []bool{true, false} {
		if code := create("pay.prod.pay.prod.orders", validate); code != kerr.InvalidTopicException.Code {
			t.Errorf("name that begins with that of a namespace twice: got code %d, want %d", code,
				kerr.InvalidTopicException.Code)
		}
		if code := create("pay.prod.orders", validate); code != kerr.TopicAlreadyExists.Code {
			t.Errorf("dotted name of a topic: got code %d, want %d", code, kerr.TopicAlreadyExists.Code)
		}
	}
}
