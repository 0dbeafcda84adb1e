package kafkaapi_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/kafkaapi"
)

// fill creates a topic with ten records, three of them in one batch.
func (w *harness) fill(topic string, config map[string]*string) {
	w.Helper()
	ctx := short(w.T)
	client := w.client(kgo.DefaultProduceTopic(topic))
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, config, topic); err != nil {
		w.Fatal(err)
	}
	batch := 3
	for i := 0; i < 10; i += batch {
		var rs []*kgo.Record
		for j := range min(batch, 10-i) {
			rs = append(rs, &kgo.Record{Key: []byte("k"), Value: fmt.Append(nil, i+j)})
		}
		w.ok(client.ProduceSync(ctx, rs...).FirstErr())
	}
}

func TestDeleteRecords(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	w.fill("orders", nil)
	w.ok(w.broker.Consumer.Subscribe(ctx, publicTopic("orders"), "s",
		messaging.Position{Kind: messaging.Earliest}, nil))
	remove := func(topic string, partition int32, offset int64) kadm.DeleteRecordsResponse {
		t.Helper()
		request := kmsg.NewPtrDeleteRecordsRequest()
		request.TimeoutMillis = 10_000
		request.Topics = []kmsg.DeleteRecordsRequestTopic{{
			Topic:      topic,
			Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}},
		}}
		response, err := request.RequestWith(ctx, w.client().SeedBrokers()[0])
		w.ok(err)
		p := response.Topics[0].Partitions[0]
		return kadm.DeleteRecordsResponse{LowWatermark: p.LowWatermark, Err: kerr.ErrorForCode(p.ErrorCode)}
	}
	start := func() int64 {
		t.Helper()
		listed, err := admin.ListStartOffsets(ctx, "orders")
		w.ok(err)
		o, _ := listed.Lookup("orders", 0)
		return o.Offset
	}
	for _, step := range []struct {
		name   string
		offset int64
		fails  error
		start  int64
	}{
		{"behind the end", 11, kerr.OffsetOutOfRange, 0},
		{"negative", -2, kerr.OffsetOutOfRange, 0},
		{"in the middle of a batch", 4, nil, 4},
		{"before the beginning", 2, nil, 4},
		{"far behind the end", 1 << 62, kerr.OffsetOutOfRange, 4},
	} {
		got := remove("orders", 0, step.offset)
		if !errors.Is(got.Err, step.fails) || step.fails == nil && got.LowWatermark != step.start {
			t.Errorf("%s: got %+v, want %v and first offset %d", step.name, got, step.fails, step.start)
		}
		if got := start(); got != step.start {
			t.Errorf("%s: topic begins at %d, want %d", step.name, got, step.start)
		}
	}
	got := poll(t, w.client(kgo.ConsumeTopics("orders"), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 6)
	if got[0].Offset != 4 || len(got) != 6 {
		t.Errorf("a consumer from the start gets %d records from %d on, want 6 from 4 on", len(got), got[0].Offset)
	}
	stats, err := w.broker.Statistics.Stats(ctx, publicTopic("orders"))
	if err != nil || stats.Subscriptions[0].Backlog != 6 {
		t.Errorf("subscription: got %+v, %v; want a backlog of 6", stats.Subscriptions, err)
	}
	if got := remove("orders", 0, -1); got.Err != nil || got.LowWatermark != 10 || start() != 10 {
		t.Errorf("to the end: got %+v, want first offset 10", got)
	}
	for name, want := range map[string]error{
		"unknown": kerr.UnknownTopicOrPartition,
		"a b":     kerr.InvalidTopicException,
	} {
		if got := remove(name, 0, 0); !errors.Is(got.Err, want) {
			t.Errorf("%s: got %v, want %v", name, got.Err, want)
		}
	}
	for _, partition := range []int32{-1, 1, 1 << 30} {
		if got := remove("orders", partition, 0); !errors.Is(got.Err, kerr.UnknownTopicOrPartition) {
			t.Errorf("partition %d: got %v, want %v", partition, got.Err, kerr.UnknownTopicOrPartition)
		}
	}
	if got := w.trail.count("topics", "delete", audit.Allowed); got != 9 {
		t.Errorf("got %d audit records, want one per allowed call", got)
	}
	w.fill("compacted", map[string]*string{"cleanup.policy": str("compact")})
	if got := remove("compacted", 0, 3); !errors.Is(got.Err, kerr.PolicyViolation) {
		t.Errorf("compacted topic: got %v, want %v", got.Err, kerr.PolicyViolation)
	}
}

func TestDescribeProducers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	w.fill("orders", nil)
	ask := func(topic string, partitions ...int32) kmsg.DescribeProducersResponseTopic {
		t.Helper()
		request := kmsg.NewPtrDescribeProducersRequest()
		request.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: partitions}}
		response, err := request.RequestWith(ctx, w.client().SeedBrokers()[0])
		w.ok(err)
		return response.Topics[0]
	}
	got := ask("orders", 0, 1)
	if p := got.Partitions[0].ActiveProducers; len(p) != 1 || p[0].LastSequence != 9 || p[0].ProducerEpoch != 0 ||
		p[0].LastTimestamp == 0 || p[0].CurrentTxnStartOffset != -1 {
		t.Errorf("got %+v, want one producer with last sequence 9", p)
	}
	if c := got.Partitions[1].ErrorCode; c != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("partition that does not exist: got code %d, want %v", c, kerr.UnknownTopicOrPartition)
	}
	if c := ask("unknown", 0).Partitions[0].ErrorCode; c != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("topic that does not exist: got code %d, want %v", c, kerr.UnknownTopicOrPartition)
	}
}

func TestDescribeLogDirs(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	w.fill("orders", nil)
	admin := kadm.NewClient(w.client())
	all, err := admin.DescribeAllLogDirs(ctx, nil)
	w.ok(err)
	dir := all[1]["/"]
	p, ok := dir.Topics.Lookup("orders", 0)
	if dir.Err != nil || !ok || p.Size < 100 {
		t.Errorf("got %+v, want the size of the topic's partition", dir)
	}
	some, err := admin.DescribeBrokerLogDirs(ctx, 1, kadm.TopicsSet{"orders": {0: {}, 7: {}}, "unknown": {0: {}}})
	w.ok(err)
	if got := some["/"].Topics; len(got) != 1 || len(got["orders"]) != 1 {
		t.Errorf("got %+v, want the one partition that exists", got)
	}
	nobody := kadm.NewClient(w.clientAs(as(w.account("nobody"))))
	if _, err := nobody.DescribeBrokerLogDirs(ctx, 1, nil); !errors.Is(err, kerr.ClusterAuthorizationFailed) {
		t.Errorf("without a role: got %v, want %v", err, kerr.ClusterAuthorizationFailed)
	}
	if w.trail.count("messagingclusters", "describe", audit.Denied) == 0 {
		t.Error("got no audit record of the denial, want one")
	}
}

// fixedDisk is a disk of a fixed size.
type fixedDisk struct{ total, free int64 }

// Space implements kafkaapi.Disk.
func (d fixedDisk) Space() (total, free int64, err error) { return d.total, d.free, nil }

// TestLogDirsReportTheDisk checks that a caller who may describe the cluster gets the size of the
// disk and its free space.
func TestLogDirsReportTheDisk(t *testing.T) {
	t.Parallel()
	silent := newHarness(t)
	w := newHarness(t, func(o *kafkaapi.Options) { o.Disk = fixedDisk{total: 1000, free: 300} })
	w.bind("reader", "topic-consumer")
	request := kmsg.NewPtrDescribeLogDirsRequest()
	request.Version = 4
	for what, tc := range map[string]struct {
		r    *rawClient
		want string
	}{
		"a disk of unknown size":          {silent.wire(silent.token), "code 0, -1 of -1"},
		"an administrator":                {w.wire(w.token), "code 0, 300 of 1000"},
		"an account without a permission": {w.wire(w.account("reader")), "code 31"},
	} {
		response := roundTrip[*kmsg.DescribeLogDirsResponse](tc.r, request)
		got := fmt.Sprintf("code %d", response.ErrorCode)
		for _, dir := range response.Dirs {
			got += fmt.Sprintf(", %d of %d", dir.UsableBytes, dir.TotalBytes)
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", what, got, tc.want)
		}
	}
}
