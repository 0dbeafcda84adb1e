package kafkaapi_test

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/names"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/test/tally"
)

// deleteOffsets deletes the offsets of partition 0 of topics and returns the code of the response and of
// each topic.
func (w *harness) deleteOffsets(client *kgo.Client, group string, topics ...string) (int16, []int16) {
	w.Helper()
	request := kmsg.NewPtrOffsetDeleteRequest()
	request.Group = group
	for _, topic := range topics {
		request.Topics = append(request.Topics,
			kmsg.OffsetDeleteRequestTopic{
				Topic:      topic,
				Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}},
			})
	}
	response, err := request.RequestWith(short(w.T), client.SeedBrokers()[0])
	w.ok(err)
	var codes []int16
	for _, topic := range response.Topics {
		codes = append(codes, topic.Partitions[0].ErrorCode)
	}
	return response.ErrorCode, codes
}

func TestOffsetDelete(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	client := w.client()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopics(ctx, 1, 1, nil, "orders", "payments"); err != nil {
		t.Fatal(err)
	}
	if code, _ := w.deleteOffsets(client, "team", "orders"); code != kerr.GroupIDNotFound.Code {
		t.Errorf("group that does not exist: got code %d, want %v", code, kerr.GroupIDNotFound)
	}
	commit := func() {
		t.Helper()
		offsets := make(kadm.Offsets)
		offsets.AddOffset("orders", 0, 5, -1)
		offsets.AddOffset("payments", 0, 6, -1)
		w.ok(admin.CommitAllOffsets(ctx, "team", offsets))
	}
	committed := func(topic string) bool {
		t.Helper()
		got, err := admin.FetchOffsets(ctx, "team")
		w.ok(err)
		_, ok := got.Lookup(topic, 0)
		return ok
	}
	commit()
	if code, codes := w.deleteOffsets(client, "team", "orders", "unknown"); code != 0 || codes[0] != 0 ||
		codes[1] != kerr.UnknownTopicOrPartition.Code || committed("orders") || !committed("payments") {
		t.Errorf("group without members: got code %d and %v, want the offset of orders deleted", code, codes)
	}
	commit()
	member := w.client(kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("team"), kgo.DisableAutoCommit(),
		kgo.FetchMaxWait(100*time.Millisecond))
	w.stable("team", 1)
	if code, codes := w.deleteOffsets(client, "team", "orders", "payments", "public.default.orders"); code != 0 ||
		codes[0] != kerr.GroupSubscribedToTopic.Code || codes[1] != 0 || codes[2] != kerr.GroupSubscribedToTopic.Code {
		t.Errorf("topic with a member: got code %d and %v, want %v only for it", code, codes,
			kerr.GroupSubscribedToTopic)
	}
	if !committed("orders") || committed("payments") {
		t.Errorf("got offsets of orders %v and payments %v, want only those of the topic with a member",
			committed("orders"), committed("payments"))
	}
	member.Close()
	if got := w.trail.count("subscriptions", "delete", audit.Allowed); got != 2 {
		t.Errorf("got %d audit records, want 2", got)
	}
}

// stable waits until a group is stable with so many members.
func (w *harness) stable(group string, members int) {
	w.Helper()
	ctx := short(w.T)
	admin := kadm.NewClient(w.client())
	for ctx.Err() == nil {
		d, err := admin.DescribeGroups(ctx, group)
		if err == nil && d[group].State == "Stable" && len(d[group].Members) == members {
			return
		}
	}
	w.Fatalf("group %s is not stable with %d members", group, members)
}

// TestOffsetDeleteOfConsumers checks that only the offsets of topics that members of the consumer
// protocol subscribe to are protected.
func TestOffsetDeleteOfConsumers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	client := w.client()
	if _, err := kadm.NewClient(client).CreateTopics(ctx, 1, 1, nil, "orders", "payments"); err != nil {
		t.Fatal(err)
	}
	w.ok(client.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte("x")}).FirstErr())
	member, held := w.consumer("team", kgo.ConsumeTopics("orders"))
	poll(t, member, 1)
	held.wait(t, 1)
	w.ok(member.CommitUncommittedOffsets(ctx))
	if code, codes := w.deleteOffsets(client, "team", "orders", "payments"); code != 0 ||
		codes[0] != kerr.GroupSubscribedToTopic.Code || codes[1] != 0 {
		t.Errorf("with a member: got code %d and %v, want %v only for its topic", code, codes,
			kerr.GroupSubscribedToTopic)
	}
	member.Close()
	if code, codes := w.deleteOffsets(client, "team", "orders"); code != 0 || codes[0] != 0 {
		t.Errorf("without members: got code %d and %v, want success", code, codes)
	}
}

// TestOffsetDeleteOfOtherProtocols checks that offsets are not deleted while the subscriptions of
// members are unknown.
func TestOffsetDeleteOfOtherProtocols(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	client := w.client()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	for group, protocol := range map[string]groups.JoinRequest{
		"connect": {Type: "connect", Protocols: []groups.Protocol{{Name: "default", Metadata: []byte("anything")}}},
		"garbled": {
			Type:      "consumer",
			Protocols: []groups.Protocol{{Name: "range", Metadata: []byte{0, 1, 0xff, 0xff}}},
		},
	} {
		protocol.SessionTimeout, protocol.RebalanceTimeout, protocol.ClientID = 10*time.Second, 10*time.Second, "c"
		if _, err := w.cluster.Groups.Join(ctx, groups.Key{Tenant: names.PublicDefault.Tenant, Group: group},
			&protocol); err != nil {
			t.Fatal(err)
		}
		if code, _ := w.deleteOffsets(client, group, "orders"); code != kerr.NonEmptyGroup.Code {
			t.Errorf("%s: got code %d, want %v", group, code, kerr.NonEmptyGroup)
		}
	}
}

// TestAuthorizedOperations checks the bits of the operations that a caller may perform.
func TestAuthorizedOperations(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	admin := kadm.NewClient(w.client())
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	offsets := make(kadm.Offsets)
	offsets.AddOffset("orders", 0, 5, -1)
	w.ok(admin.CommitAllOffsets(ctx, "team", offsets))
	reader, writer := w.account("reader"), w.account("writer")
	w.bind("reader", "topic-consumer")
	w.bind("writer", "topic-producer")
	const read, write, create, remove, alter, describe, describeConfigs, alterConfigs, idempotent = 1 << 3, 1 << 4,
		1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 10, 1 << 11, 1 << 12
	for name, tc := range map[string]struct {
		token                 string
		topic, group, cluster int32
	}{
		"administrator": {
			w.token, read | write | create | remove | alter | describe | describeConfigs | alterConfigs,
			read | describe | remove, describe | describeConfigs | idempotent,
		},
		"consumer": {reader, read | describe | describeConfigs, read | describe, describe | describeConfigs},
		"producer": {writer, write | describe | describeConfigs, -1 << 31, describe | describeConfigs | idempotent},
	} {
		broker := w.clientAs(as(tc.token)).SeedBrokers()[0]
		for _, requested := range []bool{true, false} {
			metadata := kmsg.NewPtrMetadataRequest()
			metadata.Topics = []kmsg.MetadataRequestTopic{{Topic: str("orders")}}
			metadata.IncludeTopicAuthorizedOperations = requested
			metadata.IncludeClusterAuthorizedOperations = requested
			topics, err := metadata.RequestWith(ctx, broker)
			w.ok(err)
			describeGroups := kmsg.NewPtrDescribeGroupsRequest()
			describeGroups.Groups, describeGroups.IncludeAuthorizedOperations = []string{"team"}, requested
			described, err := describeGroups.RequestWith(ctx, broker)
			w.ok(err)
			describeCluster := kmsg.NewPtrDescribeClusterRequest()
			describeCluster.IncludeClusterAuthorizedOperations = requested
			cluster, err := describeCluster.RequestWith(ctx, broker)
			w.ok(err)
			got := []int32{
				topics.Topics[0].AuthorizedOperations, described.Groups[0].AuthorizedOperations,
				cluster.ClusterAuthorizedOperations,
			}
			want := []int32{tc.topic, tc.group, tc.cluster}
			for i := range got {
				if !requested {
					want[i] = -1 << 31
				}
				if got[i] != want[i] {
					t.Errorf("%s, requested %v, number %d: got bits %b, want %b", name, requested, i, got[i], want[i])
				}
			}
		}
	}
}

// TestAttackGroupsOfOthers checks that a caller who may delete subscriptions in one namespace
// cannot delete groups or offsets of another.
func TestAttackGroupsOfOthers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	broker := w.broker
	mine := names.Namespace{Tenant: "public", Name: "mine"}
	w.ok(broker.Catalogue.CreateNamespace(ctx, mine, messaging.Policies{}))
	_, err := broker.Kafka.CreateKafkaTopic(ctx, names.Topic{Namespace: mine, Local: "own"}, 1, nil, false)
	w.ok(err)
	w.partitioned("orders", 1)
	boss := kadm.NewClient(w.client())
	for group, topics := range map[string][]string{
		"theirs": {"orders"}, "both": {"orders", "public.mine.own"},
		"own": {"public.mine.own"},
	} {
		offsets := make(kadm.Offsets)
		for _, topic := range topics {
			offsets.AddOffset(topic, 0, 1, -1)
		}
		w.ok(boss.CommitAllOffsets(ctx, group, offsets))
	}
	token := w.account("owner")
	w.ok(w.policy.SetBinding(access.Binding{
		Organization: organization, Name: "owner", RoleKind: "ClusterRole", Role: "namespace-owner",
		Subjects:    []access.Subject{{Kind: access.SubjectServiceAccount, Name: "owner"}},
		Restriction: &access.Restriction{Tenant: "public", Namespace: "mine"},
	}))
	admin := kadm.NewClient(w.clientAs(as(token)))
	attempts, successes := 0, 0
	for _, group := range []string{"theirs", "both"} {
		attempts += 2
		if _, err := admin.DeleteGroup(ctx, group); !errors.Is(err, kerr.GroupAuthorizationFailed) {
			successes++
			t.Errorf("deleting %s: got %v, want %v", group, err, kerr.GroupAuthorizationFailed)
		}
		if code, topics := w.deleteOffsets(w.clientAs(as(token)), group, "orders"); code != 30 {
			successes++
			t.Errorf("deleting offsets of %s: got code %d, %v; want 30", group, code, topics)
		}
	}
	if _, err := admin.DeleteGroup(ctx, "own"); err != nil {
		t.Errorf("deleting the caller's own group: %v", err)
	}
	tally.Attack(t, "stream: groups of other namespaces", attempts, successes)
}
