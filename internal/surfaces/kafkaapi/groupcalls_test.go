package kafkaapi_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (r *rawClient) joined(group, member string, instance *string) *kmsg.JoinGroupResponse {
	r.Helper()
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.MemberID, join.InstanceID, join.ProtocolType = 9, group, member, instance, "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 10_000, 10_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{1}}}
	return roundTrip[*kmsg.JoinGroupResponse](r, join)
}

func (r *rawClient) member(group string) *kmsg.JoinGroupResponse {
	r.Helper()
	got := r.joined(group, r.joined(group, "", nil).MemberID, nil)
	if got.ErrorCode != 0 {
		r.Fatalf("joining %s: got code %d, want success", group, got.ErrorCode)
	}
	return got
}

func (r *rawClient) synced(of *kmsg.JoinGroupResponse, group string, kind, protocol *string) *kmsg.SyncGroupResponse {
	r.Helper()
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 5, group, of.MemberID, of.Generation
	sync.ProtocolType, sync.Protocol = kind, protocol
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: of.MemberID, MemberAssignment: []byte{2}}}
	return roundTrip[*kmsg.SyncGroupResponse](r, sync)
}

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

func committing(version int16, group string, generation int32, member string, id [16]byte) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.Generation, r.MemberID = version, group, generation, member
	row := kmsg.NewOffsetCommitRequestTopic()
	row.Topic, row.TopicID = "a", id
	row.Partitions = []kmsg.OffsetCommitRequestTopicPartition{{Offset: 5, LeaderEpoch: -1}}
	r.Topics = append(r.Topics, row)
	return r
}

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
