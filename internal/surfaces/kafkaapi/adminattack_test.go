package kafkaapi_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/ops/audit"
	"freshet/test/tally"
)

// TestAttackAdministration checks that every administrative call without the permission is denied,
// for existing and missing topics, and changes nothing.
func TestAttackAdministration(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	w.fill("orders", nil)
	offsets := make(kadm.Offsets)
	offsets.AddOffset("orders", 0, 5, -1)
	w.ok(kadm.NewClient(w.client()).CommitAllOffsets(ctx, "team", offsets))
	nobody, reader, writer := w.account("nobody"), w.account("reader"), w.account("writer")
	w.bind("reader", "topic-consumer")
	w.bind("writer", "topic-producer")

	changes := map[string]func(b *kgo.Broker, topic string) (int16, error){
		"AlterConfigs": func(b *kgo.Broker, topic string) (int16, error) {
			r := kmsg.NewPtrAlterConfigsRequest()
			r.Resources = []kmsg.AlterConfigsRequestResource{{
				ResourceType: kmsg.ConfigResourceTypeTopic,
				ResourceName: topic,
				Configs:      []kmsg.AlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: str("1")}},
			}}
			response, err := r.RequestWith(ctx, b)
			if err != nil {
				return 0, err
			}
			return response.Resources[0].ErrorCode, nil
		},
		"IncrementalAlterConfigs": func(b *kgo.Broker, topic string) (int16, error) {
			r := kmsg.NewPtrIncrementalAlterConfigsRequest()
			r.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
				ResourceType: kmsg.ConfigResourceTypeTopic,
				ResourceName: topic,
				Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{
					{Name: "retention.ms", Value: str("1")},
				},
			}}
			response, err := r.RequestWith(ctx, b)
			if err != nil {
				return 0, err
			}
			return response.Resources[0].ErrorCode, nil
		},
		"CreatePartitions": func(b *kgo.Broker, topic string) (int16, error) {
			r := kmsg.NewPtrCreatePartitionsRequest()
			r.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: topic, Count: 9}}
			response, err := r.RequestWith(ctx, b)
			if err != nil {
				return 0, err
			}
			return response.Topics[0].ErrorCode, nil
		},
		"DeleteRecords": func(b *kgo.Broker, topic string) (int16, error) {
			r := kmsg.NewPtrDeleteRecordsRequest()
			r.Topics = []kmsg.DeleteRecordsRequestTopic{{
				Topic:      topic,
				Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: -1}},
			}}
			response, err := r.RequestWith(ctx, b)
			if err != nil {
				return 0, err
			}
			return response.Topics[0].Partitions[0].ErrorCode, nil
		},
		"OffsetDelete": func(b *kgo.Broker, topic string) (int16, error) {
			r := kmsg.NewPtrOffsetDeleteRequest()
			r.Group = "team"
			r.Topics = []kmsg.OffsetDeleteRequestTopic{{
				Topic:      topic,
				Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}},
			}}
			response, err := r.RequestWith(ctx, b)
			if err != nil {
				return 0, err
			}
			return response.ErrorCode, nil
		},
	}
	reads := map[string]func(b *kgo.Broker, topic string) (int16, error){
		"DescribeConfigs": func(b *kgo.Broker, topic string) (int16, error) {
			r := kmsg.NewPtrDescribeConfigsRequest()
			r.Resources = []kmsg.DescribeConfigsRequestResource{{
				ResourceType: kmsg.ConfigResourceTypeTopic,
				ResourceName: topic,
			}}
			response, err := r.RequestWith(ctx, b)
			if err != nil {
				return 0, err
			}
			return response.Resources[0].ErrorCode, nil
		},
		"DescribeProducers": func(b *kgo.Broker, topic string) (int16, error) {
			r := kmsg.NewPtrDescribeProducersRequest()
			r.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{0}}}
			response, err := r.RequestWith(ctx, b)
			if err != nil {
				return 0, err
			}
			return response.Topics[0].Partitions[0].ErrorCode, nil
		},
		"DescribeTopicPartitions": func(b *kgo.Broker, topic string) (int16, error) {
			r := kmsg.NewPtrDescribeTopicPartitionsRequest()
			r.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: topic}}
			response, err := r.RequestWith(ctx, b)
			if err != nil {
				return 0, err
			}
			return response.Topics[0].ErrorCode, nil
		},
	}
	attempts, successes := 0, 0
	try := func(principal, token, name string, call func(*kgo.Broker, string) (int16, error)) {
		for _, topic := range []string{"orders", "unknown", "public.default.orders"} {
			attempts++
			code, err := call(w.clientAs(as(token)).SeedBrokers()[0], topic)
			if err != nil || code != 29 && code != 30 {
				successes++
				t.Errorf("%s: %s on %s: got code %d, %v; want a denial", principal, name, topic, code, err)
			}
		}
	}
	for name, call := range changes {
		try("nobody", nobody, name, call)
		try("reader", reader, name, call)
		try("writer", writer, name, call)
	}
	for name, call := range reads {
		try("nobody", nobody, name, call)
	}
	try("writer", writer, "DescribeProducers", reads["DescribeProducers"])
	if got := w.values("orders"); got != "" {
		t.Errorf("configuration: got %q, want it unchanged", got)
	}
	topic, err := w.broker.Kafka.KafkaTopic(ctx, publicTopic("orders"))
	w.ok(err)
	if extent, err := topic.Read(ctx, 0, 0, nil); err != nil || topic.Partitions() != 1 || extent.First != 0 ||
		extent.Next != 10 {
		t.Errorf("topic: got %d partitions, %+v, %v; want it unchanged", topic.Partitions(), extent, err)
	}
	if got := w.trail.count("topics", "update", audit.Denied); got < 27 {
		t.Errorf("got %d audit records of denied updates, want one for each", got)
	}
	tally.Attack(t, "administration over the Kafka protocol without permission", attempts, successes)
}
