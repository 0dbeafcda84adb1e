package kafkaapi_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/identity/access"
	"freshet/test/tally"
)

// restricted binds a role to an account for some resources and returns a connection of the account.
func (w *harness) restricted(account, role string, where *access.Restriction) *rawClient {
	w.Helper()
	return w.wire(w.attacker(account, role, where, "", false))
}

func onTopic(topic string) *access.Restriction {
	return &access.Restriction{Tenant: "public", Namespace: "default", Topic: topic}
}

// TestAttackMembersOfOthers checks that a principal who may use a group, but joined with another member id, cannot
// act as a member of somebody else: the id is unknown to it. All groups are tested: with the classic protocol, with
// the consumer protocol and with both.
func TestAttackMembersOfOthers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.secrets()
	victims := w.victims()
	other := w.restricted("other", "tenant-admin", &access.Restriction{Tenant: "public"})
	before := w.groupState(victims)
	attempts, successes := 0, 0
	advertised := roundTrip[*kmsg.ApiVersionsResponse](other, kmsg.NewPtrApiVersionsRequest())
	for _, api := range advertised.ApiKeys {
		key := api.ApiKey
		if !slices.Contains([]int16{8, 11, 12, 13, 14, 68}, key) {
			continue
		}
		row := groupMatrix[key]
		for version := api.MinVersion; version <= api.MaxVersion; version++ {
			for _, victim := range victims[:4] {
				at := victim
				at.topic, at.topicID = "orders", w.topicID("orders")
				for i, request := range row.attempts(version, &at) {
					if !actsAsMember(request, at.member, at.instance) {
						continue
					}
					request.SetVersion(version)
					code, shown := row.code(roundTrip[kmsg.Response](other, request), at.name)
					attempts++
					if code != codeUnknownMember || shown {
						successes++
						t.Errorf("API %d version %d, attempt %d on group %s: got code %d, shown %t; want %d", key,
							version, i, at.name, code, shown, codeUnknownMember)
					}
				}
			}
		}
	}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.InstanceID, join.ProtocolType = 9, "static", str("one"), "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 10_000, 10_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscriptionTo("orders")}}
	attempts++
	if got := roundTrip[*kmsg.JoinGroupResponse](other, join); got.ErrorCode != 82 {
		successes++
		t.Errorf("joining with the instance id of others: got code %d, want 82", got.ErrorCode)
	}
	if after := w.groupState(victims); after != before {
		successes++
		t.Errorf("groups: got %s, want %s", after, before)
	}
	tally.Attack(t, "members of others in groups that the caller may use", attempts, successes)
}

// actsAsMember reports whether a request uses the id of a member.
func actsAsMember(request kmsg.Request, member, instance string) bool {
	switch r := request.(type) {
	case *kmsg.OffsetCommitRequest:
		return r.MemberID == member
	case *kmsg.JoinGroupRequest:
		return r.MemberID == member && instance == ""
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return r.MemberID == member
	}
	return true
}

// TestWhoUsesGroups checks who may use a group: principals that may consume all of its topics, or
// have the permission on the group.
func TestWhoUsesGroups(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.secrets()
	one, both := w.restricted("one", "topic-consumer", onTopic("mine")), w.restricted("both", "topic-consumer",
		onTopic("mine"))
	w.ok(w.policy.SetBinding(access.Binding{
		Organization: organization, Name: "both-orders", RoleKind: "ClusterRole", Role: "topic-consumer",
		Subjects:    []access.Subject{{Kind: access.SubjectServiceAccount, Name: "both"}},
		Restriction: onTopic("orders"),
	}))
	named := w.restricted("named", "topic-consumer", &access.Restriction{Tenant: "public", Subscription: "mine-*"})
	viewer := w.wire(w.attacker("viewer", "tenant-readonly", &access.Restriction{Tenant: "public"}, "", false))

	join := func(r *rawClient, group, protocolType, member string, metadata []byte) *kmsg.JoinGroupResponse {
		t.Helper()
		request := kmsg.NewPtrJoinGroupRequest()
		request.Version, request.Group, request.MemberID, request.ProtocolType = 3, group, member, protocolType
		request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = 10_000, 10_000
		request.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: metadata}}
		return roundTrip[*kmsg.JoinGroupResponse](r, request)
	}
	want := func(what string, got, code int16) {
		t.Helper()
		if got != code {
			t.Errorf("%s: got code %d, want %d", what, got, code)
		}
	}
	describe := func(r *rawClient, group string) int16 {
		t.Helper()
		request := kmsg.NewPtrDescribeGroupsRequest()
		request.Version, request.Groups = 6, []string{group}
		return roundTrip[*kmsg.DescribeGroupsResponse](r, request).Groups[0].ErrorCode
	}
	want("a new group with a topic of others", join(one, "mine-1", "consumer", "",
		subscriptionTo("mine", "orders")).ErrorCode, codeGroupDenied)
	first := join(one, "mine-1", "consumer", "", subscriptionTo("mine"))
	want("a new group", first.ErrorCode, 0)
	want("describing the own group", describe(one, "mine-1"), 0)
	want("describing as a viewer of the tenant", describe(viewer, "mine-1"), 0)
	want("describing with a permission on the group's name", describe(named, "mine-1"), 0)
	want("describing another group", describe(named, "team"), codeGroupDenied)
	want("joining again with a topic of others", join(one, "mine-1", "consumer", first.MemberID,
		subscriptionTo("mine", "orders")).ErrorCode, codeGroupDenied)
	want("joining again", join(one, "mine-1", "consumer", first.MemberID, subscriptionTo("mine")).ErrorCode, 0)
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Version, leave.Group, leave.MemberID = 2, "mine-1", first.MemberID
	want("leaving", roundTrip[*kmsg.LeaveGroupResponse](one, leave).ErrorCode, 0)

	wide := join(both, "mine-1", "consumer", "", subscriptionTo("mine", "orders"))
	want("joining with two topics", wide.ErrorCode, 0)
	want("joining a group that reads a topic of others", join(one, "mine-1", "consumer", "",
		subscriptionTo("mine")).ErrorCode, codeGroupDenied)
	want("describing a group that reads a topic of others", describe(one, "mine-1"), codeGroupDenied)

	want("a group of Kafka Connect without a permission on the tenant", join(both, "connect", "connect", "",
		[]byte{1}).ErrorCode, codeGroupDenied)
	want("metadata that cannot be decoded", join(both, "odd", "consumer", "", []byte{1}).ErrorCode, codeGroupDenied)
	want("a group of Kafka Connect", join(w.wire(w.token), "connect", "connect", "", []byte{1}).ErrorCode, 0)
	want("joining a group whose topics are unknown", join(both, "connect", "consumer", "",
		subscriptionTo("mine")).ErrorCode, codeGroupDenied)
	want("describing a group whose topics are unknown", describe(both, "connect"), codeGroupDenied)
}

// TestPatternsMatchConsumableTopics checks that a subscription with a regular expression gets only topics that the
// member may consume.
func TestPatternsMatchConsumableTopics(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.secrets()
	r := w.restricted("one", "topic-consumer", onTopic("mine"))
	w.ok(w.policy.SetBinding(access.Binding{
		Organization: organization, Name: "sees", RoleKind: "ClusterRole", Role: "tenant-readonly",
		Subjects: []access.Subject{{Kind: access.SubjectServiceAccount, Name: "one"}},
	}))
	join := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	join.Version, join.Group, join.MemberID, join.RebalanceTimeoutMillis = 1, "g", "m", 10_000
	join.SubscribedTopicRegex, join.Topics = str(".*"), []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	got := roundTrip[*kmsg.ConsumerGroupHeartbeatResponse](r, join)
	if got.ErrorCode != 0 || got.Assignment == nil || len(got.Assignment.Topics) != 1 ||
		got.Assignment.Topics[0].TopicID != w.topicID("mine") {
		t.Errorf("got code %d, assignment %+v; want the topic mine only", got.ErrorCode, got.Assignment)
	}
	join.MemberEpoch, join.SubscribedTopicRegex, join.Topics = got.MemberEpoch, nil, nil
	join.RebalanceTimeoutMillis = -1
	if got := roundTrip[*kmsg.ConsumerGroupHeartbeatResponse](r, join); got.ErrorCode != 0 {
		t.Errorf("next heartbeat: got code %d, want success", got.ErrorCode)
	}
	join.MemberEpoch, join.MemberID, join.SubscribedTopicNames, join.RebalanceTimeoutMillis = 0, "n",
		[]string{"mine", "orders"}, 10_000
	join.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	if got := roundTrip[*kmsg.ConsumerGroupHeartbeatResponse](r, join); got.ErrorCode != codeTopicDenied {
		t.Errorf("subscribing to a topic of others: got code %d, want %d", got.ErrorCode, codeTopicDenied)
	}
}
