package kafkadiff

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

func offsetCases() []conversation {
	return []conversation{
		{name: "offset commit", key: keyOffsetCommit, run: offsetCommit},
		{name: "offset commit of members", key: keyOffsetCommit, run: offsetCommitOfMembers},
		{name: "offset fetch", key: keyOffsetFetch, run: offsetFetch},
		{name: "offset delete", key: keyOffsetDelete, run: offsetDelete},
	}
}

// commit returns a request to commit one offset.
func (s *script) commit(group string, generation int32, member, label string, id [16]byte,
	partition int32,
) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Group, r.Generation, r.MemberID = group, generation, member
	part := kmsg.NewOffsetCommitRequestTopicPartition()
	part.Partition, part.Offset, part.Metadata = partition, 1, text("note")
	row := kmsg.NewOffsetCommitRequestTopic()
	row.Topic, row.TopicID = s.nameOf(label), id
	row.Partitions = append(row.Partitions, part)
	r.Topics = append(r.Topics, row)
	return r
}

func offsetCommit(s *script) {
	_, id := s.topic("a", 2)
	g := s.nameOf("g")
	s.send("new group", s.commit(g, -1, "", "a", id, 0))
	s.send("again", s.commit(g, -1, "", "a", id, 1))
	s.send("unknown partition", s.commit(g, -1, "", "a", id, 7))
	s.send("unknown topic", s.commit(g, -1, "", "unknown", bogusID, 0))
	s.send("generation in an empty group", s.commit(g, 3, "", "a", id, 0))
	s.send("member in an empty group", s.commit(g, 3, "bogus-member", "a", id, 0))
	s.send("member without generation", s.commit(g, -1, "bogus-member", "a", id, 0))
	s.send("generation in a new group", s.commit(s.nameOf("g2"), 3, "", "a", id, 0))
	s.send("member in a new group", s.commit(s.nameOf("g2"), 3, "bogus-member", "a", id, 0))
	s.send("member without generation in a new group", s.commit(s.nameOf("g3"), -1, "bogus-member", "a", id, 0))
	s.send("generation -2", s.commit(s.nameOf("g4"), -2, "", "a", id, 0))
	s.send("no group", s.commit("", -1, "", "a", id, 0))
	s.send("no group but a generation", s.commit("", 2, "bogus-member", "a", id, 0))
	long := s.commit(g, -1, "", "a", id, 0)
	metadata := make([]byte, 5000)
	long.Topics[0].Partitions[0].Metadata = text(string(metadata))
	s.send("metadata", long)
	null := s.commit(g, -1, "", "a", id, 0)
	null.Topics[0].Partitions[0].Metadata = nil
	s.send("null metadata", null)
	negative := s.commit(g, -1, "", "a", id, 0)
	negative.Topics[0].Partitions[0].Offset = -5
	s.send("negative offset", negative)
	nothing := s.commit(g, -1, "", "a", id, 0)
	nothing.Topics = nil
	s.send("nothing", nothing)
}

func offsetCommitOfMembers(s *script) {
	_, id := s.topic("a", 2)
	g := s.nameOf("g")
	member, generation := s.join(g, nil)
	s.send("before the assignment", s.commit(g, generation, member, "a", id, 0))
	s.sync(g, member, generation)
	s.send("member", s.commit(g, generation, member, "a", id, 0))
	s.send("old generation", s.commit(g, generation-1, member, "a", id, 0))
	s.send("future generation", s.commit(g, generation+1, member, "a", id, 0))
	s.send("unknown member", s.commit(g, generation, "bogus-member", "a", id, 0))
	s.send("no member", s.commit(g, -1, "", "a", id, 0))
	s.send("member without generation", s.commit(g, -1, member, "a", id, 0))
	if s.version >= 7 {
		instance := s.commit(g, generation, member, "a", id, 0)
		instance.InstanceID = text("other")
		s.send("unknown instance", instance)
	}
}

// offsets returns a request for the offsets of a group, in the form of the version.
func (s *script) offsets(group string, member *string, epoch int32, rows map[string][16]byte) *kmsg.OffsetFetchRequest {
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Group = group
	row := kmsg.NewOffsetFetchRequestGroup()
	row.Group, row.MemberID, row.MemberEpoch = group, member, epoch
	for label, id := range rows {
		r.Topics = append(r.Topics, kmsg.OffsetFetchRequestTopic{Topic: s.nameOf(label), Partitions: []int32{0, 1, 9}})
		row.Topics = append(row.Topics,
			kmsg.OffsetFetchRequestGroupTopic{Topic: s.nameOf(label), TopicID: id, Partitions: []int32{0, 1, 9}})
	}
	if len(rows) == 0 && rows != nil {
		r.Topics, row.Topics = []kmsg.OffsetFetchRequestTopic{}, []kmsg.OffsetFetchRequestGroupTopic{}
	}
	r.Groups = append(r.Groups, row)
	return r
}

func offsetFetch(s *script) {
	_, id := s.topic("a", 2)
	g := s.nameOf("g")
	commit := s.commit(g, -1, "", "a", id, 1)
	commit.Version = s.broker.common(keyOffsetCommit).max
	s.do(commit)
	rows := map[string][16]byte{"a": id}
	s.send("some", s.offsets(g, nil, -1, rows))
	s.send("unknown topic", s.offsets(g, nil, -1, map[string][16]byte{"unknown": bogusID}))
	s.send("unknown group", s.offsets(s.nameOf("none"), nil, -1, rows))
	s.send("no group", s.offsets("", nil, -1, rows))
	s.send("no topics", s.offsets(g, nil, -1, map[string][16]byte{}))
	if s.version >= 2 {
		s.send("all", s.offsets(g, nil, -1, nil))
		s.send("all of an unknown group", s.offsets(s.nameOf("none"), nil, -1, nil))
	}
	if s.version >= 9 {
		s.send("unknown member", s.offsets(g, text("bogus-member"), 1, rows))
		s.send("unknown member of an unknown group", s.offsets(s.nameOf("none"), text("bogus-member"), 1, rows))
	}
	if s.version >= 7 {
		stable := s.offsets(g, nil, -1, rows)
		stable.RequireStable = true
		s.send("stable", stable)
	}
}

func offsetDelete(s *script) {
	name, id := s.topic("a", 2)
	g := s.nameOf("g")
	s.do(s.commit(g, -1, "", "a", id, 0))
	remove := func(group, topic string, partitions ...int32) *kmsg.OffsetDeleteRequest {
		r := kmsg.NewPtrOffsetDeleteRequest()
		r.Group = group
		row := kmsg.NewOffsetDeleteRequestTopic()
		row.Topic = topic
		for _, p := range partitions {
			row.Partitions = append(row.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p})
		}
		r.Topics = append(r.Topics, row)
		return r
	}
	s.send("committed and not", remove(g, name, 0, 1, 9))
	s.send("unknown topic", remove(g, s.nameOf("unknown"), 0))
	s.send("unknown group", remove(s.nameOf("none"), name, 0))
	s.send("no group", remove("", name, 0))
}

func groupCases() []conversation {
	return []conversation{
		{name: "find coordinator", key: keyFindCoordinator, run: findCoordinator},
		{name: "join", key: keyJoinGroup, run: join},
		{name: "join invalid", key: keyJoinGroup, run: joinInvalid},
		{name: "join static", key: keyJoinGroup, min: 5, run: joinStatic},
		{name: "sync", key: keySyncGroup, run: syncGroup},
		{name: "heartbeat", key: keyHeartbeat, run: heartbeat},
		{name: "leave", key: keyLeaveGroup, run: leave},
		{name: "describe groups", key: keyDescribeGroups, run: describeGroups},
		{name: "list groups", key: keyListGroups, run: listGroups},
		{name: "delete groups", key: keyDeleteGroups, run: deleteGroups},
	}
}

func findCoordinator(s *script) {
	find := func(kind int8, keys ...string) *kmsg.FindCoordinatorRequest {
		r := kmsg.NewPtrFindCoordinatorRequest()
		r.CoordinatorType, r.CoordinatorKeys, r.CoordinatorKey = kind, keys, keys[0]
		return r
	}
	s.send("group", find(0, s.nameOf("g")))
	s.send("no group", find(0, ""))
	if s.version >= 1 {
		s.send("transaction", find(1, s.nameOf("t")))
		s.send("type 7", find(7, s.nameOf("g")))
	}
	if s.version >= 4 {
		s.send("two", find(0, s.nameOf("g"), s.nameOf("h")))
	}
}

// joining returns a request to join a group.
func joining(group, member string, instance *string) *kmsg.JoinGroupRequest {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Group, r.MemberID, r.InstanceID, r.ProtocolType = group, member, instance, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 10_000, 10_000
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}}}
	return r
}

// join makes a member join a group and returns its id and the generation.
func (s *script) join(group string, instance *string) (member string, generation int32) {
	for range 2 {
		r := joining(group, member, instance)
		r.SetVersion(s.broker.common(keyJoinGroup).max)
		response, err := s.wire.request(r)
		s.fail(err)
		joined, _ := response.(*kmsg.JoinGroupResponse)
		member, generation = joined.MemberID, joined.Generation
		if joined.ErrorCode == 0 {
			break
		}
	}
	s.n.memberID(member)
	return member, generation
}

// synchronising returns the request of a leader that assigns itself something.
func synchronising(group, member string, generation int32) *kmsg.SyncGroupRequest {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Group, r.MemberID, r.Generation = group, member, generation
	r.ProtocolType, r.Protocol = text("consumer"), text("range")
	r.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{
		{MemberID: member, MemberAssignment: []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
	}
	return r
}

func (s *script) sync(group, member string, generation int32) {
	r := synchronising(group, member, generation)
	r.SetVersion(s.broker.common(keySyncGroup).max)
	_, err := s.wire.request(r)
	s.fail(err)
}

func join(s *script) {
	g := s.nameOf("g")
	first, _ := s.send("first", joining(g, "", nil)).(*kmsg.JoinGroupResponse)
	if s.version >= 4 {
		s.send("with the id", joining(g, first.MemberID, nil))
	}
	s.send("again", joining(g, first.MemberID, nil))
}

func joinInvalid(s *script) {
	g := s.nameOf("g")
	s.send("unknown member", joining(g, "bogus-member", nil))
	s.send("no group", joining("", "", nil))
	short := joining(g, "", nil)
	short.SessionTimeoutMillis = 10
	s.send("short session", short)
	long := joining(g, "", nil)
	long.SessionTimeoutMillis = 1 << 30
	s.send("long session", long)
	none := joining(g, "", nil)
	none.Protocols = nil
	s.send("no protocol", none)
	untyped := joining(g, "", nil)
	untyped.ProtocolType = ""
	s.send("no protocol type", untyped)
	if s.version >= 5 {
		s.send("empty instance", joining(s.nameOf("empty"), "", text("")))
		s.send("illegal instance", joining(s.nameOf("illegal"), "", text("a/b")))
		s.send("dot as instance", joining(s.nameOf("dot"), "", text(".")))
		s.send("unknown member with an instance", joining(s.nameOf("dot"), "bogus-member", text("i")))
	}
	member, generation := s.join(g, nil)
	s.sync(g, member, generation)
	other := joining(g, "", nil)
	other.Protocols[0].Name = "other"
	s.send("other protocol", other)
	other = joining(g, "", nil)
	other.ProtocolType = "connect"
	s.send("other type", other)
}

func joinStatic(s *script) {
	g := s.nameOf("g")
	first, _ := s.send("first", joining(g, "", text("i"))).(*kmsg.JoinGroupResponse)
	s.sync(g, first.MemberID, first.Generation)
	s.send("replaced", joining(g, "", text("i")))
	s.send("fenced", joining(g, first.MemberID, text("i")))
}

func syncGroup(s *script) {
	g := s.nameOf("g")
	member, generation := s.join(g, nil)
	s.send("unknown member", synchronising(g, "bogus-member", generation))
	s.send("old generation", synchronising(g, member, generation-1))
	s.send("no group", synchronising("", member, generation))
	s.send("unknown group", synchronising(s.nameOf("none"), member, generation))
	if s.version >= 5 {
		for _, c := range []struct {
			name           string
			kind, protocol *string
		}{
			{"null protocol", text("consumer"), nil},
			{"null type", nil, text("range")},
			{"both null", nil, nil},
			{"wrong protocol", text("consumer"), text("other")},
			{"wrong type", text("connect"), text("range")},
			{"empty protocol", text("consumer"), text("")},
			{"empty type", text(""), text("range")},
		} {
			r := synchronising(g, member, generation)
			r.ProtocolType, r.Protocol = c.kind, c.protocol
			s.send(c.name, r)
		}
	}
	if s.version >= 3 {
		r := synchronising(g, member, generation)
		r.InstanceID = text("i")
		s.send("unknown instance", r)
	}
	s.send("leader", synchronising(g, member, generation))
	s.send("again", synchronising(g, member, generation))
}

func heartbeat(s *script) {
	g := s.nameOf("g")
	beat := func(group, member string, generation int32) *kmsg.HeartbeatRequest {
		r := kmsg.NewPtrHeartbeatRequest()
		r.Group, r.MemberID, r.Generation = group, member, generation
		return r
	}
	member, generation := s.join(g, nil)
	s.send("before the assignment", beat(g, member, generation))
	s.sync(g, member, generation)
	s.send("member", beat(g, member, generation))
	s.send("old generation", beat(g, member, generation-1))
	s.send("unknown member", beat(g, "bogus-member", generation))
	s.send("empty member", beat(g, "", generation))
	s.send("unknown group", beat(s.nameOf("none"), member, generation))
	s.send("no group", beat("", member, generation))
	if s.version >= 3 {
		r := beat(g, member, generation)
		r.InstanceID = text("i")
		s.send("unknown instance", r)
	}
}

func leave(s *script) {
	g := s.nameOf("g")
	leaving := func(group, member string, instance *string) *kmsg.LeaveGroupRequest {
		r := kmsg.NewPtrLeaveGroupRequest()
		r.Group, r.MemberID = group, member
		r.Members = []kmsg.LeaveGroupRequestMember{{MemberID: member, InstanceID: instance}}
		return r
	}
	member, generation := s.join(g, nil)
	s.sync(g, member, generation)
	s.send("unknown member", leaving(g, "bogus-member", nil))
	s.send("unknown group", leaving(s.nameOf("none"), "bogus-member", nil))
	s.send("no group", leaving("", "bogus-member", nil))
	if s.version >= 3 {
		s.send("unknown instance", leaving(g, "", text("i")))
		s.send("member with an unknown instance", leaving(g, member, text("i")))
		none := leaving(g, member, nil)
		none.Members = nil
		s.send("nobody", none)
	}
	s.send("leave", leaving(g, member, nil))
	s.send("again", leaving(g, member, nil))
}

func describeGroups(s *script) {
	g, empty := s.nameOf("g"), s.nameOf("empty")
	_, id := s.topic("a", 1)
	s.do(s.commit(empty, -1, "", "a", id, 0))
	describe := func(groups ...string) *kmsg.DescribeGroupsRequest {
		r := kmsg.NewPtrDescribeGroupsRequest()
		r.Groups = groups
		return r
	}
	s.send("unknown", describe(s.nameOf("none")))
	s.send("empty", describe(empty))
	s.send("no group", describe(""))
	member, generation := s.join(g, nil)
	s.send("completing", describe(g))
	s.sync(g, member, generation)
	s.send("stable", describe(g, empty))
}

func listGroups(s *script) {
	g, empty := s.nameOf("g"), s.nameOf("empty")
	_, id := s.topic("a", 1)
	s.do(s.commit(empty, -1, "", "a", id, 0))
	member, generation := s.join(g, nil)
	s.sync(g, member, generation)
	list := func(states, types []string) *kmsg.ListGroupsRequest {
		r := kmsg.NewPtrListGroupsRequest()
		r.StatesFilter, r.TypesFilter = states, types
		return r
	}
	s.send("all", list(nil, nil))
	if s.version >= 4 {
		s.send("stable", list([]string{"stable"}, nil))
		s.send("unknown state", list([]string{"nonsense"}, nil))
	}
	if s.version >= 5 {
		s.send("classic", list(nil, []string{"Classic"}))
		s.send("consumer", list(nil, []string{"consumer"}))
		s.send("unknown type", list(nil, []string{"nonsense"}))
	}
}

func deleteGroups(s *script) {
	g, empty := s.nameOf("g"), s.nameOf("empty")
	_, id := s.topic("a", 1)
	s.do(s.commit(empty, -1, "", "a", id, 0))
	member, generation := s.join(g, nil)
	s.sync(g, member, generation)
	r := kmsg.NewPtrDeleteGroupsRequest()
	r.Groups = []string{g, empty, s.nameOf("none"), ""}
	s.send("delete", r)
	s.send("again", r)
}
