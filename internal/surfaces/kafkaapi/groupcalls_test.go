package kafkaapi_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// joined makes a classic member join a group alone and returns the response.
func (r *rawClient) joined(group, member string, instance *string) *kmsg.JoinGroupResponse {
	r.Helper()
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.MemberID, join.InstanceID, join.ProtocolType = 9, group, member, instance, "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 10_000, 10_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{1}}}
	return roundTrip[*kmsg.JoinGroupResponse](r, join)
}

// member makes a classic member join a group alone, without an assignment yet.
func (r *rawClient) member(group string) *kmsg.JoinGroupResponse {
	r.Helper()
	got := r.joined(group, r.joined(group, "", nil).MemberID, nil)
	if got.ErrorCode != 0 {
		r.Fatalf("joining %s: got code %d, want success", group, got.ErrorCode)
	}
	return got
}

// synced sends the leader's SyncGroup request.
func (r *rawClient) synced(of *kmsg.JoinGroupResponse, group string, kind, protocol *string) *kmsg.SyncGroupResponse {
	r.Helper()
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 5, group, of.MemberID, of.Generation
	sync.ProtocolType, sync.Protocol = kind, protocol
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: of.MemberID, MemberAssignment: []byte{2}}}
	return roundTrip[*kmsg.SyncGroupResponse](r, sync)
}

// TestSyncNamesTheProtocol checks that SyncGroup from version 5 on has to name type and protocol.
func TestSyncNamesTheProtocol(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	wire := w.wire(w.token)
	member := wire.member("g")
	for name, c := range map[string][2]*string{
		"no protocol": {str("consumer"), nil}, "no type": {nil, str("range")}, "neither": {nil, nil},
		"empty protocol": {str("consumer"), str("")}, "empty type": {str(""), str("range")},
	} {
		if got := wire.synced(member, "g", c[0], c[1]); got.ErrorCode != kerr.InconsistentGroupProtocol.Code {
			t.Errorf("%s: got code %d, want %d", name, got.ErrorCode, kerr.InconsistentGroupProtocol.Code)
		}
	}
	if got := wire.synced(member, "g", str("consumer"), str("range")); got.ErrorCode != 0 {
		t.Errorf("both: got code %d, want success", got.ErrorCode)
	}
}

// TestEmptyInstanceIDIsStatic checks that a member with an empty instance id is a static member: it needs no
// member id, and another process with that instance id replaces it.
func TestEmptyInstanceIDIsStatic(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	wire := w.wire(w.token)
	first := wire.joined("g", "", str(""))
	if first.ErrorCode != 0 || len(first.Members) != 1 || first.Members[0].InstanceID == nil ||
		*first.Members[0].InstanceID != "" {
		t.Fatalf("got %+v, want a static member", first)
	}
	if got := wire.synced(first, "g", str("consumer"), str("range")); got.ErrorCode != 0 {
		t.Fatalf("sync: got code %d, want success", got.ErrorCode)
	}
	second := wire.joined("g", "", str(""))
	if second.ErrorCode != 0 || second.Generation != first.Generation || second.MemberID == first.MemberID {
		t.Errorf("another process: got %+v, want the same generation and a new member", second)
	}
	if got := wire.joined("g", first.MemberID, str("")); got.ErrorCode != kerr.FencedInstanceID.Code {
		t.Errorf("the first process: got code %d, want %d", got.ErrorCode, kerr.FencedInstanceID.Code)
	}
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Version, describe.Groups = 5, []string{"g"}
	got := roundTrip[*kmsg.DescribeGroupsResponse](wire, describe).Groups[0].Members
	if len(got) != 1 || got[0].InstanceID == nil || *got[0].InstanceID != "" {
		t.Errorf("described: got %+v, want an empty instance id", got)
	}
}

// committing returns a request to commit an offset of topic a.
func committing(version int16, group string, generation int32, member string, id [16]byte) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.Generation, r.MemberID = version, group, generation, member
	row := kmsg.NewOffsetCommitRequestTopic()
	row.Topic, row.TopicID = "a", id
	row.Partitions = []kmsg.OffsetCommitRequestTopicPartition{{Offset: 5, LeaderEpoch: -1}}
	r.Topics = append(r.Topics, row)
	return r
}

// TestCommitErrors checks the codes of rejected commits, and commits without a group id.
func TestCommitErrors(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	wire := w.wire(w.token)
	id := wire.idOf(publicTopic("a"))
	member := wire.member("g")
	wire.synced(member, "g", str("consumer"), str("range"))
	for _, c := range []struct {
		name       string
		version    int16
		group      string
		generation int32
		member     string
		want       int16
	}{
		{"member", 8, "g", member.Generation, member.MemberID, 0},
		{"member without generation", 8, "g", -1, member.MemberID, kerr.IllegalGeneration.Code},
		{"neither", 8, "g", -1, "", kerr.UnknownMemberID.Code},
		{"generation of no group", 8, "none", 3, "", kerr.IllegalGeneration.Code},
		{"member of no group", 8, "none", 3, "m", kerr.IllegalGeneration.Code},
		{"member of no group", 9, "none", 3, "m", kerr.GroupIDNotFound.Code},
		{"no group id", 10, "", -1, "", 0},
		{"no group id", 2, "", -1, "", 0},
		{"no group id but a member", 8, "", 3, "m", kerr.UnknownMemberID.Code},
	} {
		got := roundTrip[*kmsg.OffsetCommitResponse](wire, committing(c.version, c.group, c.generation, c.member, id))
		if code := got.Topics[0].Partitions[0].ErrorCode; code != c.want {
			t.Errorf("%s in version %d: got code %d, want %d", c.name, c.version, code, c.want)
		}
	}
}

// TestConsumerGroupCalls checks calls of and about a member with the consumer protocol.
func TestConsumerGroupCalls(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("orders", 1)
	w.partitioned("a", 1)
	client := w.client()
	w.ok(w.heartbeat(client, func(*kmsg.ConsumerGroupHeartbeatRequest) {}))
	if err := w.heartbeat(client,
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.ServerAssignor = str("") }); !errors.Is(err,
		kerr.UnsupportedAssignor) {
		t.Errorf("empty assignor: got %v, want %v", err, kerr.UnsupportedAssignor)
	}
	if err := w.heartbeat(client, func(r *kmsg.ConsumerGroupHeartbeatRequest) {
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: [16]byte{1}, Partitions: []int32{0}}}
	}); !errors.Is(err, kerr.InvalidRequest) {
		t.Errorf("joining with partitions of an unknown topic: got %v, want %v", err, kerr.InvalidRequest)
	}
	wire := w.wire(w.token)
	id := wire.idOf(publicTopic("a"))
	for _, c := range []struct {
		name   string
		member *string
		epoch  int32
		want   int16
	}{
		{"current", str("m"), 1, 0},
		{"no member", nil, -1, 0},
		{"epoch -1", str("m"), -1, kerr.StaleMemberEpoch.Code},
		{"unknown member", str("x"), -1, kerr.UnknownMemberID.Code},
		{"empty member", str(""), -1, kerr.UnknownMemberID.Code},
	} {
		r := kmsg.NewPtrOffsetFetchRequest()
		r.Version = 9
		r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", MemberID: c.member, MemberEpoch: c.epoch}}
		if got := roundTrip[*kmsg.OffsetFetchResponse](wire, r).Groups[0]; got.ErrorCode != c.want {
			t.Errorf("OffsetFetch, %s: got code %d, want %d", c.name, got.ErrorCode, c.want)
		}
	}
	for version, want := range map[int16]int16{8: kerr.UnsupportedVersion.Code, 9: kerr.StaleMemberEpoch.Code} {
		got := roundTrip[*kmsg.OffsetCommitResponse](wire, committing(version, "g", -1, "m", id))
		if code := got.Topics[0].Partitions[0].ErrorCode; code != want {
			t.Errorf("OffsetCommit with epoch -1 in version %d: got code %d, want %d", version, code, want)
		}
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Version, leave.Group, leave.Members = 5, "g", []kmsg.LeaveGroupRequestMember{{MemberID: "m"}}
	if got := roundTrip[*kmsg.LeaveGroupResponse](wire, leave); got.Members[0].ErrorCode != 0 {
		t.Errorf("LeaveGroup: got %+v, want success", got)
	}
	if err := w.heartbeat(client,
		func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberEpoch = 1 }); !errors.Is(err, kerr.UnknownMemberID) {
		t.Errorf("after LeaveGroup: got %v, want %v", err, kerr.UnknownMemberID)
	}
}

// TestEmptyGroupID checks calls that reject an empty group id.
func TestEmptyGroupID(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	wire := w.wire(w.token)
	remove := kmsg.NewPtrOffsetDeleteRequest()
	if got := roundTrip[*kmsg.OffsetDeleteResponse](wire, remove); got.ErrorCode != kerr.InvalidGroupID.Code {
		t.Errorf("OffsetDelete: got code %d, want %d", got.ErrorCode, kerr.InvalidGroupID.Code)
	}
	describe := kmsg.NewPtrConsumerGroupDescribeRequest()
	describe.Groups = []string{""}
	got := roundTrip[*kmsg.ConsumerGroupDescribeResponse](wire, describe).Groups[0]
	if got.ErrorCode != kerr.InvalidGroupID.Code || got.State != "" {
		t.Errorf("ConsumerGroupDescribe: got %+v, want code %d and no state", got, kerr.InvalidGroupID.Code)
	}
}
