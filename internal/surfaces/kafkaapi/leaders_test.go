package kafkaapi_test

import (
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
	"freshet/internal/surfaces/kafkaapi"
)

// leaders are the leader and coordinator of an ensemble of two members.
type leaders struct {
	mu          sync.Mutex // protects all fields except the addresses
	node, epoch int32
	coordinator int32
	addresses   [2]string
}

func (l *leaders) set(node, epoch, coordinator int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node, l.epoch, l.coordinator = node, epoch, coordinator
}

// ensembleView is the ensemble as seen by one of its members.
type ensembleView struct {
	*leaders
	self int32
}

// Self implements kafkaapi.Members.
func (a ensembleView) Self() int32 { return a.self }

// Nodes implements kafkaapi.Members.
func (a ensembleView) Nodes(bool) map[int32]string {
	return map[int32]string{1: a.addresses[0], 2: a.addresses[1]}
}

// Leader implements kafkaapi.Members.
func (a ensembleView) Leader(engine.TopicID) (node, epoch int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.node, a.epoch
}

// Coordinator implements kafkaapi.Members.
func (a ensembleView) Coordinator(groups.Key) int32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.coordinator
}

// twoMembers returns two servers over one broker that share leaders.
func twoMembers(t *testing.T) (first, second *harness, l *leaders) {
	t.Helper()
	l = &leaders{node: 1, epoch: 7, coordinator: 1}
	first = newHarness(t)
	second = &harness{T: t, identity: first.identity, policy: first.policy, token: first.token}
	cluster := *first.cluster
	second.cluster = &cluster
	second.server = kafkaapi.NewServer(kafkaapi.Options{
		Options: first.options, Policy: first.policy,
		Clusters: second,
	})
	t.Cleanup(func() { _ = second.server.Shutdown(t.Context()) })
	second.address = second.listen(nil)
	l.addresses = [2]string{first.address, second.address}
	first.cluster.Members, second.cluster.Members = ensembleView{l, 1}, ensembleView{l, 2}
	return first, second, l
}

// roundTripMember sends a request to this member.
func roundTripMember[R kmsg.Response](w *harness, client *kgo.Client, request kmsg.Request) R {
	w.Helper()
	response, err := client.SeedBrokers()[0].Request(short(w.T), request)
	w.ok(err)
	typed, ok := response.(R)
	if !ok {
		w.Fatalf("got a response of type %T", response)
	}
	return typed
}

func metadataOf(topic string) *kmsg.MetadataRequest {
	request := kmsg.NewPtrMetadataRequest()
	row := kmsg.NewMetadataRequestTopic()
	row.Topic = kmsg.StringPtr(topic)
	request.Topics = append(request.Topics, row)
	return request
}

// TestLeaders checks that Metadata reports the leader or its absence, that other members reject
// requests and name the leader, and that old and future leader epochs are rejected.
func TestLeaders(t *testing.T) {
	t.Parallel()
	first, second, l := twoMembers(t)
	ctx := short(t)
	w := first
	w.ok(w.broker.Catalogue.CreateTopic(ctx, publicTopic("orders"), messaging.NewTopic{Partitions: 1}))
	here, there := first.client(), second.client()
	for _, c := range []struct {
		node, epoch int32
		code        int16
	}{{1, 7, 0}, {2, 8, 0}, {-1, 0, kerr.LeaderNotAvailable.Code}} {
		l.set(c.node, c.epoch, 1)
		got := roundTripMember[*kmsg.MetadataResponse](w, here, metadataOf("orders"))
		part := got.Topics[0].Partitions[0]
		if part.Leader != c.node || part.LeaderEpoch != c.epoch && c.node > 0 || part.ErrorCode != c.code ||
			len(got.Brokers) != 2 {
			t.Errorf("leader %d in epoch %d: got %+v of %d brokers", c.node, c.epoch, part, len(got.Brokers))
		}
	}

	topic := roundTripMember[*kmsg.MetadataResponse](w, here, metadataOf("orders")).Topics[0]
	fetch := func(epoch int32) *kmsg.FetchRequest {
		request := kmsg.NewPtrFetchRequest()
		request.MaxBytes, request.SessionEpoch = 1<<20, -1
		row := kmsg.NewFetchRequestTopic()
		row.Topic, row.TopicID = "orders", topic.TopicID
		part := kmsg.NewFetchRequestTopicPartition()
		part.CurrentLeaderEpoch, part.PartitionMaxBytes = epoch, 1<<20
		row.Partitions = append(row.Partitions, part)
		request.Topics = append(request.Topics, row)
		return request
	}
	offsets := func(epoch int32) *kmsg.ListOffsetsRequest {
		request := kmsg.NewPtrListOffsetsRequest()
		row := kmsg.NewListOffsetsRequestTopic()
		row.Topic = "orders"
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.CurrentLeaderEpoch, part.Timestamp = epoch, -1
		row.Partitions = append(row.Partitions, part)
		request.Topics = append(request.Topics, row)
		return request
	}
	l.set(1, 7, 1)
	for _, c := range []struct {
		client *kgo.Client
		epoch  int32
		want   int16
	}{
		{here, -1, 0},
		{here, 7, 0},
		{here, 6, kerr.FencedLeaderEpoch.Code},
		{here, 8, kerr.UnknownLeaderEpoch.Code},
		{there, -1, kerr.NotLeaderForPartition.Code},
		{there, 7, kerr.NotLeaderForPartition.Code},
	} {
		fetched := roundTripMember[*kmsg.FetchResponse](w, c.client, fetch(c.epoch))
		part := fetched.Topics[0].Partitions[0]
		listed := roundTripMember[*kmsg.ListOffsetsResponse](w, c.client,
			offsets(c.epoch)).Topics[0].Partitions[0].ErrorCode
		if part.ErrorCode != c.want || listed != c.want {
			t.Errorf("epoch %d: got codes %d and %d, want %d", c.epoch, part.ErrorCode, listed, c.want)
		}
		if c.want != kerr.NotLeaderForPartition.Code {
			continue
		}
		if part.CurrentLeader.LeaderID != 1 || part.CurrentLeader.LeaderEpoch != 7 || len(fetched.Brokers) != 1 ||
			net.JoinHostPort(fetched.Brokers[0].Host, strconv.Itoa(int(fetched.Brokers[0].Port))) != first.address {
			t.Errorf("hint: got leader %+v at %+v, want node 1 at %s", part.CurrentLeader, fetched.Brokers,
				first.address)
		}
	}
	l.set(-1, 0, 1)
	if got := roundTripMember[*kmsg.FetchResponse](w, here, fetch(-1)).Topics[0].Partitions[0]; got.ErrorCode == 0 ||
		len(got.RecordBatches) > 0 || got.CurrentLeader.LeaderID != -1 {
		t.Errorf("no leader: got %+v, want an error without a hint", got)
	}
}

// TestClientsFollowLeaders checks that a client continues to produce and consume while topics move
// between members.
func TestClientsFollowLeaders(t *testing.T) {
	t.Parallel()
	first, _, l := twoMembers(t)
	ctx := short(t)
	first.ok(first.broker.Catalogue.CreateTopic(ctx, publicTopic("orders"), messaging.NewTopic{Partitions: 1}))
	client := first.client(kgo.DefaultProduceTopic("orders"), kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for i := range 6 {
		l.set(int32(i%2)+1, 7+int32(i), 1)
		first.ok(client.ProduceSync(ctx, &kgo.Record{Value: []byte{byte('0' + i)}}).FirstErr())
		if got := poll(t, client, 1); string(got[0].Value) != string([]byte{byte('0' + i)}) {
			t.Errorf("got %q, want message %d", got[0].Value, i)
		}
	}
}

// TestCoordinators checks that every member reports the coordinator of a group, or its absence.
func TestCoordinators(t *testing.T) {
	t.Parallel()
	first, second, l := twoMembers(t)
	request := kmsg.NewPtrFindCoordinatorRequest()
	request.CoordinatorKey, request.CoordinatorKeys = "g", []string{"g"}
	for _, w := range []*harness{first, second} {
		client := w.client()
		for _, node := range []int32{1, 2, -1} {
			l.set(1, 7, node)
			got := roundTripMember[*kmsg.FindCoordinatorResponse](w, client, request).Coordinators[0]
			if node < 0 {
				if got.ErrorCode != kerr.CoordinatorNotAvailable.Code {
					t.Errorf("no coordinator: got code %d, want %d", got.ErrorCode, kerr.CoordinatorNotAvailable.Code)
				}
				continue
			}
			if got.NodeID != node || net.JoinHostPort(got.Host, strconv.Itoa(int(got.Port))) != l.addresses[node-1] {
				t.Errorf("node %d: got %+v, want %s", node, got, l.addresses[node-1])
			}
		}
	}
}
