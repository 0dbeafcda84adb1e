package kafkaapi_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
)

// shareConsumer opens a share consumer of franz-go.
func (w *harness) shareConsumer(group, topic string, opts ...kgo.Opt) *kgo.Client {
	w.Helper()
	return w.client(append([]kgo.Opt{
		kgo.ShareGroup(group), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.MetadataMinAge(10 * time.Millisecond), kgo.MetadataMaxAge(200 * time.Millisecond),
	}, opts...)...)
}

// shareTopic creates a topic whose share group starts at the first record.
func (w *harness) shareTopic(group, topic string, partitions int32) {
	w.Helper()
	ctx := short(w.T)
	if _, err := kadm.NewClient(w.client()).CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		w.Fatal(err)
	}
	w.setGroupConfig(group, "share.auto.offset.reset", "earliest")
}

func (w *harness) setGroupConfig(group, name, value string) {
	w.Helper()
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = name, &value
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(short(w.T), w.client())
	w.ok(err)
	w.ok(kerr.ErrorForCode(response.Resources[0].ErrorCode))
}

// send produces records with the values 0 to n-1.
func (w *harness) sendNumbers(topic string, n int) {
	w.Helper()
	producer := w.client()
	var all []*kgo.Record
	for i := range n {
		all = append(all, &kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: fmt.Append(nil, i)})
	}
	w.ok(producer.ProduceSync(short(w.T), all...).FirstErr())
}

func topicNamed(local string) names.Topic {
	return names.Topic{Namespace: names.PublicDefault, Local: local}
}

// TestShareConsumers checks with franz-go that two share consumers and a consumer over HTTP's part of the broker
// drain one subscription: every record is consumed once.
func TestShareConsumers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const records = 600
	w.shareTopic("workers", "jobs", 3)
	w.sendNumbers("jobs", records/2)
	seen := make(chan string, 2*records)
	ctx := short(t)
	for range 2 {
		client := w.shareConsumer("workers", "jobs", kgo.ShareMaxRecords(20))
		go func() {
			for {
				fetches := client.PollFetches(ctx)
				if ctx.Err() != nil || fetches.IsClientClosed() {
					return
				}
				fetches.EachError(func(topic string, p int32, err error) { t.Errorf("%s/%d: %v", topic, p, err) })
				fetches.EachRecord(func(r *kgo.Record) { seen <- string(r.Value) })
			}
		}()
	}
	got := make(map[string]int)
	next := func() {
		select {
		case value := <-seen:
			got[value]++
		case <-ctx.Done():
			t.Fatalf("got %d of %d records", len(got), records)
		}
	}
	for len(got) < 10 {
		next()
	}
	w.sendNumbers("jobs", records/2) // the same values again
	for total := len(got); total < records; total++ {
		next()
	}
	for value, n := range got {
		if n > 2 {
			t.Errorf("got record %s %d times", value, n)
		}
	}
}

// TestShareAcknowledgements checks the effect of each acknowledgement on the subscription.
func TestShareAcknowledgements(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	w.shareTopic("workers", "jobs", 1)
	w.setGroupConfig("workers", "share.delivery.count.limit", "5")
	w.sendNumbers("jobs", 4)
	client := w.shareConsumer("workers", "jobs")
	released := false
	var order []string
	for done := 0; done < 4; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("got %v", order)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			order = append(order, string(r.Value))
			switch {
			case string(r.Value) == "1":
				r.Ack(kgo.AckReject)
				done++
			case string(r.Value) == "2" && !released:
				released = true
				r.Ack(kgo.AckRelease)
			default:
				if released && string(r.Value) == "2" && r.DeliveryCount() != 2 {
					t.Errorf("released record has delivery count %d, want 2", r.DeliveryCount())
				}
				r.Ack(kgo.AckAccept)
				done++
			}
		})
		w.ok(client.FlushAcks(ctx))
	}
	if want := []string{"0", "1", "2", "3", "2"}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
	stats, err := w.broker.Statistics.Stats(ctx, topicNamed("jobs"))
	w.ok(err)
	if sub := stats.Subscriptions[0]; sub.Name != "workers" || sub.Backlog != 0 || sub.Leased != 0 {
		t.Errorf("subscription is %+v, want no backlog", sub)
	}
	letters, err := w.broker.Statistics.Stats(ctx, topicNamed("jobs-workers-DLQ"))
	w.ok(err)
	if n := letters.Partitions[0].Next; n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}

// TestShareBesideHTTP checks that a message that is leased over HTTP does not reach share consumers, and that the
// leases of a member that disconnects become free.
func TestShareBesideHTTP(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	w.shareTopic("workers", "jobs", 1)
	w.ok(w.broker.Consumer.Subscribe(ctx, topicNamed("jobs"), "workers",
		messaging.Position{Kind: messaging.Earliest}, nil))
	w.sendNumbers("jobs", 3)
	first, err := w.broker.Consumer.Receive(ctx, topicNamed("jobs"), "workers", messaging.ReceiveOptions{Max: 1})
	w.ok(err)
	client := w.shareConsumer("workers", "jobs")
	got := poll(t, client, 2)
	for _, r := range got {
		if string(r.Value) == string(first[0].Payload) {
			t.Errorf("record %s is on lease over HTTP", r.Value)
		}
	}
	client.Close() // releases both
	w.ok(w.broker.Consumer.Settle(ctx, topicNamed("jobs"), "workers",
		messaging.Settlement{ID: first[0].ID, Action: messaging.Ack}))
	rest, err := w.broker.Consumer.Receive(ctx, topicNamed("jobs"), "workers",
		messaging.ReceiveOptions{Max: 10, Wait: 10 * time.Second})
	w.ok(err)
	if len(rest) == 0 || rest[0].Redeliveries == 0 {
		t.Errorf("got %+v over HTTP, want the released messages", rest)
	}
}

// TestShareInEnsemble checks that a server that does not lead a topic returns its leader, and that one that does not
// coordinate a group says so.
func TestShareInEnsemble(t *testing.T) {
	t.Parallel()
	first, second, l := twoMembers(t)
	first.shareTopic("workers", "jobs", 1)
	first.sendNumbers("jobs", 1)
	s := first.rawShare("workers", "one", "jobs")
	s.expect(s.fetch(1), []string{"0-0×1"})
	elsewhere := &rawShare{rawClient: second.wire(second.token), group: s.group, member: s.member, topic: s.topic}
	got := elsewhere.send(elsewhere.fetchRequest(1))
	if len(got.Topics) != 1 || len(got.NodeEndpoints) != 1 || got.NodeEndpoints[0].NodeID != 1 {
		t.Fatalf("fetch at another member: %+v, want the leader", got)
	}
	if part := got.Topics[0].Partitions[0]; part.ErrorCode != 6 || part.CurrentLeader.LeaderID != 1 ||
		part.CurrentLeader.LeaderEpoch != 7 {
		t.Errorf("fetch at another member: %+v, want code 6 and the leader", part)
	}
	if code := elsewhere.acknowledge(acks(0, 0, ackAccept)); code != 6 {
		t.Errorf("acknowledgement at another member: code %d, want 6", code)
	}
	l.set(2, 8, 2)
	if code := s.acknowledge(acks(0, 0, ackAccept)); code != 6 {
		t.Errorf("acknowledgement at the former leader: code %d, want 6", code)
	}
	const notCoordinator = 16
	alter := kmsg.NewPtrAlterShareGroupOffsetsRequest()
	alter.GroupID = "workers"
	remove := kmsg.NewPtrDeleteShareGroupOffsetsRequest()
	remove.GroupID = "workers"
	if code := roundTrip[*kmsg.AlterShareGroupOffsetsResponse](s.rawClient, alter).ErrorCode; code != notCoordinator {
		t.Errorf("moving at another member: code %d, want %d", code, notCoordinator)
	}
	if code := roundTrip[*kmsg.DeleteShareGroupOffsetsResponse](s.rawClient, remove).ErrorCode; code != notCoordinator {
		t.Errorf("deleting at another member: code %d, want %d", code, notCoordinator)
	}
	if _, code := first.shareOffsets(s.rawClient, "workers"); code != notCoordinator {
		t.Errorf("describing at another member: code %d, want %d", code, notCoordinator)
	}
	first.wantList(s.rawClient, "share")
}
