package kafkadiff

import "github.com/twmb/franz-go/pkg/kmsg"

func consumerCases() []conversation {
	return []conversation{
		{name: "consumer heartbeat", key: keyConsumerHeartbeat, run: consumerHeartbeat},
		{name: "consumer heartbeat invalid", key: keyConsumerHeartbeat, run: consumerHeartbeatInvalid},
		{name: "consumer static", key: keyConsumerHeartbeat, run: consumerStatic},
		{name: "consumer offsets", key: keyOffsetFetch, min: 9, run: consumerOffsets},
		{name: "consumer commit", key: keyOffsetCommit, run: consumerCommit},
		{name: "consumer describe", key: keyConsumerDescribe, run: consumerDescribe},
		{name: "classic calls in consumer group", key: keyHeartbeat, run: classicInConsumer},
		{name: "consumer joins classic group", key: keyConsumerHeartbeat, run: consumerJoinsClassic},
		{name: "classic joins consumer group", key: keyJoinGroup, min: 4, run: classicJoinsConsumer},
	}
}

// consuming returns the first heartbeat of a member with the consumer protocol.
func consuming(group, member string, topics ...string) *kmsg.ConsumerGroupHeartbeatRequest {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Group, r.MemberID, r.RebalanceTimeoutMillis = group, member, 60_000
	r.SubscribedTopicNames, r.Topics = topics, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	return r
}

// beating returns a heartbeat that changes nothing.
func beating(group, member string, epoch int32) *kmsg.ConsumerGroupHeartbeatRequest {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Group, r.MemberID, r.MemberEpoch, r.RebalanceTimeoutMillis = group, member, epoch, -1
	return r
}

// assignable creates a topic and waits until the coordinator assigns its partitions: Kafka's coordinator gets
// to know a topic shortly after the other parts of the broker.
func (s *script) assignable(label string, partitions int32) (string, [16]byte) {
	name, id := s.topic(label, partitions)
	group := s.nameOf("first-" + label)
	s.until(func() kmsg.Request { return consuming(group, "bogus-1", name) }, func(response kmsg.Response) bool {
		r, _ := response.(*kmsg.ConsumerGroupHeartbeatResponse)
		return r.Assignment != nil && len(r.Assignment.Topics) > 0
	})
	return name, id
}

// consumer makes a member join with the consumer protocol and returns its epoch.
func (s *script) consumer(group, member string, topics ...string) int32 {
	r := consuming(group, member, topics...)
	r.SetVersion(s.broker.common(keyConsumerHeartbeat).max)
	response, err := s.wire.request(r)
	s.fail(err)
	joined, _ := response.(*kmsg.ConsumerGroupHeartbeatResponse)
	return joined.MemberEpoch
}

func consumerHeartbeat(s *script) {
	name, id := s.assignable("a", 2)
	g := s.nameOf("g")
	joined, _ := s.send("join", consuming(g, "bogus-1", name)).(*kmsg.ConsumerGroupHeartbeatResponse)
	epoch := joined.MemberEpoch
	s.send("heartbeat", beating(g, "bogus-1", epoch))
	owning := beating(g, "bogus-1", epoch)
	owning.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: id, Partitions: []int32{0, 1}}}
	s.send("owning", owning)
	s.send("joining again", beating(g, "bogus-1", 0))
	s.send("future epoch", beating(g, "bogus-1", 9))
	s.send("unknown member", beating(g, "bogus-9", epoch))
	second, _ := s.send("second member", consuming(g, "bogus-2", name)).(*kmsg.ConsumerGroupHeartbeatResponse)
	s.send("first revokes", beating(g, "bogus-1", epoch))
	assignor := beating(g, "bogus-1", epoch)
	assignor.ServerAssignor = text("range")
	s.send("assignor", assignor)
	s.send("leave", beating(g, "bogus-2", -1))
	s.send("left", beating(g, "bogus-2", second.MemberEpoch))
	s.send("leave again", beating(g, "bogus-2", -1))
}

func consumerHeartbeatInvalid(s *script) {
	name, _ := s.assignable("a", 1)
	g := s.nameOf("g")
	s.send("no group", consuming("", "bogus-1", name))
	s.send("unknown group", beating(s.nameOf("none"), "bogus-1", 1))
	s.send("unknown group left", beating(s.nameOf("none"), "bogus-1", -1))
	s.send("epoch -3", beating(g, "bogus-1", -3))
	s.send("epoch -2 without instance", beating(g, "bogus-1", -2))
	edit := func(name string, change func(*kmsg.ConsumerGroupHeartbeatRequest)) {
		r := consuming(g, "bogus-1", s.nameOf("a"))
		change(r)
		s.send(name, r)
	}
	edit("unknown assignor", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.ServerAssignor = text("nonsense") })
	edit("empty assignor", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.ServerAssignor = text("") })
	edit("empty instance", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.InstanceID = text("") })
	edit("empty rack", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.RackID = text("") })
	edit("no timeout", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.RebalanceTimeoutMillis = -1 })
	edit("no topics", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicNames = nil })
	edit("no owned partitions", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.Topics = nil })
	edit("owned partitions", func(r *kmsg.ConsumerGroupHeartbeatRequest) {
		r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: bogusID, Partitions: []int32{0}}}
	})
	if s.version >= 1 {
		edit("no member id", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.MemberID = "" })
		edit("wrong pattern", func(r *kmsg.ConsumerGroupHeartbeatRequest) { r.SubscribedTopicRegex = text("(") })
	}
	edit("unknown topic", func(r *kmsg.ConsumerGroupHeartbeatRequest) {
		r.SubscribedTopicNames = []string{s.nameOf("unknown")}
	})
	epoch := s.consumer(g, "bogus-1", name)
	change := beating(g, "bogus-1", epoch)
	change.ServerAssignor = text("nonsense")
	s.send("unknown assignor of a member", change)
	empty := beating(g, "bogus-1", epoch)
	empty.SubscribedTopicNames = []string{}
	s.send("empty subscription", empty)
}

func consumerStatic(s *script) {
	name, _ := s.assignable("a", 1)
	g := s.nameOf("g")
	static := func(member string) *kmsg.ConsumerGroupHeartbeatRequest {
		r := consuming(g, member, name)
		r.InstanceID = text("i")
		return r
	}
	joined, _ := s.send("join", static("bogus-1")).(*kmsg.ConsumerGroupHeartbeatResponse)
	s.send("in use", static("bogus-2"))
	away := beating(g, "bogus-1", -2)
	away.InstanceID = text("i")
	s.send("away", away)
	s.send("replaced", static("bogus-3"))
	fenced := beating(g, "bogus-1", joined.MemberEpoch)
	fenced.InstanceID = text("i")
	s.send("fenced", fenced)
}

func consumerOffsets(s *script) {
	name, id := s.assignable("a", 2)
	g := s.nameOf("g")
	epoch := s.consumer(g, "bogus-1", name)
	rows := map[string][16]byte{"a": id}
	s.send("member", s.offsets(g, text("bogus-1"), epoch, rows))
	s.send("stale epoch", s.offsets(g, text("bogus-1"), epoch-1, rows))
	s.send("future epoch", s.offsets(g, text("bogus-1"), epoch+1, rows))
	s.send("epoch -1", s.offsets(g, text("bogus-1"), -1, rows))
	s.send("unknown member", s.offsets(g, text("bogus-9"), epoch, rows))
	s.send("unknown member, epoch -1", s.offsets(g, text("bogus-9"), -1, rows))
	s.send("empty member", s.offsets(g, text(""), -1, rows))
	s.send("no member", s.offsets(g, nil, -1, rows))
	s.send("no member, epoch", s.offsets(g, nil, epoch, rows))
}

func consumerCommit(s *script) {
	name, id := s.assignable("a", 2)
	g := s.nameOf("g")
	epoch := s.consumer(g, "bogus-1", name)
	s.send("member", s.commit(g, epoch, "bogus-1", "a", id, 0))
	s.send("stale epoch", s.commit(g, epoch-1, "bogus-1", "a", id, 0))
	s.send("future epoch", s.commit(g, epoch+1, "bogus-1", "a", id, 0))
	s.send("epoch -1", s.commit(g, -1, "bogus-1", "a", id, 0))
	s.send("unknown member", s.commit(g, epoch, "bogus-9", "a", id, 0))
	s.send("no member", s.commit(g, -1, "", "a", id, 0))
}

func consumerDescribe(s *script) {
	name, id := s.assignable("a", 2)
	g, classic, empty := s.nameOf("g"), s.nameOf("classic"), s.nameOf("empty")
	s.consumer(g, "bogus-1", name)
	member, generation := s.join(classic, nil)
	s.sync(classic, member, generation)
	s.do(s.commit(empty, -1, "", "a", id, 0))
	r := kmsg.NewPtrConsumerGroupDescribeRequest()
	r.Groups = []string{g, classic, empty, s.nameOf("none"), ""}
	s.send("describe", r)
	old := kmsg.NewPtrDescribeGroupsRequest()
	old.Groups = []string{g}
	s.send("describe as classic", old)
}

func classicInConsumer(s *script) {
	name, _ := s.assignable("a", 1)
	g := s.nameOf("g")
	epoch := s.consumer(g, "bogus-1", name)
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID, beat.Generation = g, "bogus-1", epoch
	s.send("heartbeat", beat)
	s.send("sync", synchronising(g, "bogus-1", epoch))
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.Members = g, []kmsg.LeaveGroupRequestMember{{MemberID: "bogus-1"}}
	s.send("leave", leave)
}

// subscription is the metadata of a classic consumer that subscribes to a topic.
func subscription(topic string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics = 3, []string{topic}
	return m.AppendTo(nil)
}

func consumerJoinsClassic(s *script) {
	name, id := s.assignable("a", 2)
	g := s.nameOf("g")
	member := ""
	var generation int32
	for range 2 {
		r := joining(g, member, nil)
		r.Protocols[0].Metadata = subscription(name)
		joined, _ := s.do(r).(*kmsg.JoinGroupResponse)
		member, generation = joined.MemberID, joined.Generation
	}
	s.n.memberID(member)
	r := synchronising(g, member, generation)
	assigned := kmsg.NewConsumerMemberAssignment()
	assigned.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: name, Partitions: []int32{0, 1}}}
	r.GroupAssignment[0].MemberAssignment = assigned.AppendTo(nil)
	s.do(r)
	s.send("joins", consuming(g, "bogus-1", name))
	describe := kmsg.NewPtrConsumerGroupDescribeRequest()
	describe.Groups = []string{g}
	s.send("describe", describe)
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID, beat.Generation = g, member, generation
	s.send("classic heartbeat", beat)
	again := joining(g, member, nil)
	again.Protocols[0].Metadata = subscription(name)
	rejoined, _ := s.send("classic joins again", again).(*kmsg.JoinGroupResponse)
	follower := synchronising(g, member, rejoined.Generation)
	follower.GroupAssignment = nil
	s.send("classic synchronises", follower)
	s.send("commit", s.commit(g, rejoined.Generation, member, "a", id, 0))
	s.send("consumer leaves", beating(g, "bogus-1", -1))
	old := kmsg.NewPtrDescribeGroupsRequest()
	old.Groups = []string{g}
	s.send("classic again", old)
}

func classicJoinsConsumer(s *script) {
	name, _ := s.assignable("a", 2)
	g := s.nameOf("g")
	s.consumer(g, "bogus-1", name)
	r := joining(g, "", nil)
	r.Protocols[0].Metadata = subscription(name)
	first, _ := s.send("asks for an id", r).(*kmsg.JoinGroupResponse)
	r = joining(g, first.MemberID, nil)
	r.Protocols[0].Metadata = subscription(name)
	joined, _ := s.send("joins", r).(*kmsg.JoinGroupResponse)
	follower := synchronising(g, joined.MemberID, joined.Generation)
	follower.GroupAssignment = nil
	s.send("synchronises", follower)
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID, beat.Generation = g, joined.MemberID, joined.Generation
	s.send("heartbeat", beat)
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.Members = g, []kmsg.LeaveGroupRequestMember{{MemberID: joined.MemberID}}
	s.send("leaves", leave)
}
