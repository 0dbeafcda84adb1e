package kafkaapi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/ops/audit"
)

func TestCreatePartitions(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	if _, err := admin.CreateTopic(ctx, 2, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	w.ok(w.broker.Catalogue.CreateTopic(ctx, publicTopic("by-http"), messaging.NewTopic{}))
	partitions := func() int32 {
		topic, err := w.broker.Kafka.KafkaTopic(ctx, publicTopic("orders"))
		w.ok(err)
		return topic.Partitions()
	}
	grow := func(topic string, count int, dryRun bool) kadm.CreatePartitionsResponse {
		update := admin.UpdatePartitions
		if dryRun {
			update = admin.ValidateUpdatePartitions
		}
		response, err := update(ctx, count, topic)
		w.ok(err)
		return response[topic]
	}
	for _, step := range []struct {
		name   string
		topic  string
		count  int
		dryRun bool
		fails  error
		want   int32
	}{
		{"only tried", "orders", 5, true, nil, 2},
		{"tried with fewer", "orders", 1, true, kerr.InvalidPartitions, 2},
		{"grow", "orders", 5, false, nil, 5},
		{"the same number", "orders", 5, false, kerr.InvalidPartitions, 5},
		{"shrink", "orders", 3, false, kerr.InvalidPartitions, 5},
		{"too many", "orders", 100_000, false, kerr.InvalidPartitions, 5},
		{"not partitioned", "by-http", 3, false, kerr.InvalidPartitions, 5},
		{"not partitioned, tried", "by-http", 3, true, kerr.InvalidPartitions, 5},
	} {
		got := grow(step.topic, step.count, step.dryRun)
		if !errors.Is(got.Err, step.fails) {
			t.Errorf("%s: got %v (%s), want %v", step.name, got.Err, got.ErrMessage, step.fails)
		}
		if step.topic == "by-http" && !strings.Contains(got.ErrMessage, "make it partitioned first") {
			t.Errorf("%s: got message %q, want advice", step.name, got.ErrMessage)
		}
		if now := partitions(); now != step.want {
			t.Errorf("%s: got %d partitions, want %d", step.name, now, step.want)
		}
	}
	if got := w.trail.count("topics", "update", audit.Allowed); got != 5 {
		t.Errorf("got %d audit records, want one for each call without a dry run", got)
	}
	request := kmsg.NewPtrCreatePartitionsRequest()
	request.Topics = []kmsg.CreatePartitionsRequestTopic{
		{Topic: "orders", Count: 7},
		{Topic: "orders", Count: 8},
		{Topic: "unknown", Count: 8},
		{Topic: "no good", Count: 2},
	}
	response, err := request.RequestWith(ctx, w.client())
	w.ok(err)
	for i, want := range []*kerr.Error{
		kerr.InvalidRequest, kerr.UnknownTopicOrPartition, kerr.InvalidTopicException,
	} {
		if got := response.Topics[i].ErrorCode; got != want.Code {
			t.Errorf("%s, topic %d: got code %d, want %v", response.Topics[i].Topic, i, got, want)
		}
	}
	producer := w.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	w.ok(producer.ProduceSync(ctx, &kgo.Record{Topic: "orders", Partition: 4, Value: []byte("new")}).FirstErr())
}

// TestDescribeTopicPartitions reads all pages.
func TestDescribeTopicPartitions(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	client := w.client()
	for name, n := range map[string]int32{"a": 3, "b": 1, "c": 4} {
		if _, err := kadm.NewClient(client).CreateTopic(ctx, n, 1, nil, name); err != nil {
			t.Fatal(err)
		}
	}
	walk := func(limit int32, topics ...string) (pages int, all []string) {
		request := kmsg.NewPtrDescribeTopicPartitionsRequest()
		request.ResponsePartitionLimit = limit
		for _, topic := range topics {
			request.Topics = append(request.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: topic})
		}
		for pages = 1; pages < 20; pages++ {
			response, err := request.RequestWith(ctx, client)
			w.ok(err)
			for _, topic := range response.Topics {
				if topic.ErrorCode != 0 {
					all = append(all, fmt.Sprintf("%s!%d", *topic.Topic, topic.ErrorCode))
				}
				for _, p := range topic.Partitions {
					if p.EligibleLeaderReplicas == nil || p.LastKnownELR == nil {
						t.Errorf("%s, partition %d: got null lists, which the Java client cannot decode",
							*topic.Topic, p.Partition)
					}
					all = append(all, fmt.Sprintf("%s%d", *topic.Topic, p.Partition))
				}
			}
			if response.NextCursor == nil {
				return pages, all
			}
			request.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{
				Topic:     response.NextCursor.Topic,
				Partition: response.NextCursor.Partition,
			}
		}
		return pages, all
	}
	for _, tc := range []struct {
		limit  int32
		topics []string
		pages  int
		want   string
	}{
		{2000, nil, 1, "a0 a1 a2 b0 c0 c1 c2 c3"},
		{3, nil, 3, "a0 a1 a2 b0 c0 c1 c2 c3"},
		{1, nil, 8, "a0 a1 a2 b0 c0 c1 c2 c3"},
		{-5, []string{"b", "a"}, 4, "a0 a1 a2 b0"},
		{3, []string{"c", "a", "x", "a"}, 4, "a0 a1 a2 c0 c1 c2 c3 x!3"},
	} {
		pages, got := walk(tc.limit, tc.topics...)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%v with limit %d: got %v in %d pages, want %s", tc.topics, tc.limit, got, pages, tc.want)
		}
		if tc.limit != 3 && pages != tc.pages {
			t.Errorf("%v with limit %d: got %d pages, want %d", tc.topics, tc.limit, pages, tc.pages)
		}
	}
	request := kmsg.NewPtrDescribeTopicPartitionsRequest()
	request.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: "a", Partition: -1}
	if response, err := request.RequestWith(ctx, client); err != nil || len(response.Topics) != 1 ||
		response.Topics[0].ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("cursor with a negative partition: got %+v, %v; want %v", response, err, kerr.InvalidRequest)
	}
	request.Cursor.Partition = 1 << 30
	if response, err := request.RequestWith(ctx, client); err != nil || len(response.Topics) != 3 ||
		len(response.Topics[0].Partitions) != 0 {
		t.Errorf("cursor after the last partition: got %+v, %v; want the topics after it", response, err)
	}
}

// TestMetadataByID checks that requesting a topic by id returns its name. The Java client sends an
// empty name with the id, others send none.
func TestMetadataByID(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	client := w.client()
	response, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, "orders")
	w.ok(err)
	for name, clientName := range map[string]*string{"no name": nil, "an empty name": str("")} {
		request := kmsg.NewPtrMetadataRequest()
		request.Topics = []kmsg.MetadataRequestTopic{{Topic: clientName, TopicID: response.ID}}
		response, err := request.RequestWith(ctx, client)
		w.ok(err)
		if got := response.Topics[0]; got.ErrorCode != 0 || got.Topic == nil || *got.Topic != "orders" {
			t.Errorf("with %s: got code %d and name %v, want orders", name, got.ErrorCode, got.Topic)
		}
	}
}
