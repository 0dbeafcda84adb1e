package kafkadiff

import "github.com/twmb/franz-go/pkg/kmsg"

// Keys of the APIs.
const (
	keyProduce                 = 0
	keyFetch                   = 1
	keyListOffsets             = 2
	keyMetadata                = 3
	keyOffsetCommit            = 8
	keyOffsetFetch             = 9
	keyFindCoordinator         = 10
	keyJoinGroup               = 11
	keyHeartbeat               = 12
	keyLeaveGroup              = 13
	keySyncGroup               = 14
	keyDescribeGroups          = 15
	keyListGroups              = 16
	keyCreateTopics            = 19
	keyDeleteTopics            = 20
	keyDeleteRecords           = 21
	keyInitProducerID          = 22
	keyOffsetForLeaderEpoch    = 23
	keyDescribeConfigs         = 32
	keyAlterConfigs            = 33
	keyDescribeLogDirs         = 35
	keyCreatePartitions        = 37
	keyDeleteGroups            = 42
	keyIncrementalAlterConfigs = 44
	keyOffsetDelete            = 47
	keyDescribeCluster         = 60
	keyDescribeProducers       = 61
	keyConsumerHeartbeat       = 68
	keyConsumerDescribe        = 69
	keyListConfigResources     = 74
	keyDescribePartitions      = 75
)

// bogusID is a topic id that no broker has.
var bogusID = [16]byte{bogusByte, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func text(s string) *string { return &s }

// newTopic returns a row of CreateTopics; configs are pairs of name and value.
func newTopic(name string, partitions int32, replication int16, configs ...string) kmsg.CreateTopicsRequestTopic {
	row := kmsg.NewCreateTopicsRequestTopic()
	row.Topic, row.NumPartitions, row.ReplicationFactor = name, partitions, replication
	for i := 0; i+1 < len(configs); i += 2 {
		row.Configs = append(row.Configs,
			kmsg.CreateTopicsRequestTopicConfig{Name: configs[i], Value: text(configs[i+1])})
	}
	return row
}

func create(validateOnly bool, rows ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.TimeoutMillis, r.ValidateOnly, r.Topics = 10_000, validateOnly, rows
	return r
}

func topicCases() []conversation {
	return []conversation{
		{name: "create topics", key: keyCreateTopics, run: createTopics},
		{name: "create invalid topics", key: keyCreateTopics, run: createInvalidTopics},
		{name: "validate topics", key: keyCreateTopics, min: 1, run: validateTopics},
		{name: "delete topics", key: keyDeleteTopics, max: 5, run: deleteTopics},
		{name: "delete topics by id", key: keyDeleteTopics, min: 6, run: deleteTopicsByID},
		{name: "metadata", key: keyMetadata, run: metadata},
		{name: "metadata creates", key: keyMetadata, run: metadataCreates},
		{name: "metadata by id", key: keyMetadata, min: 10, run: metadataByID},
		{name: "create partitions", key: keyCreatePartitions, run: createPartitions},
		{name: "describe partitions", key: keyDescribePartitions, run: describePartitions},
	}
}

func createTopics(s *script) {
	s.send("one partition", create(false, newTopic(s.nameOf("a"), 1, 1)))
	s.leads("a")
	s.send("exists", create(false, newTopic(s.nameOf("a"), 1, 1)))
	s.send("configs", create(false, newTopic(s.nameOf("b"), 3, 1, "retention.ms", "1000", "cleanup.policy", "compact")))
	assigned := newTopic(s.nameOf("c"), -1, -1)
	for i := range int32(2) {
		assigned.ReplicaAssignment = append(assigned.ReplicaAssignment,
			kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: i, Replicas: []int32{1}})
	}
	s.send("assignment", create(false, assigned))
	if s.version >= 4 {
		s.send("defaults", create(false, newTopic(s.nameOf("d"), -1, -1)))
	}
	s.send("several", create(false, newTopic(s.nameOf("e"), 1, 1), newTopic(s.nameOf("e2"), 0, 1)))
	s.send("none", create(false))
}

func createInvalidTopics(s *script) {
	for _, name := range []string{"", ".", "..", "a/b", "a b", long(250)} {
		s.send("name "+name[:min(len(name), 5)], create(false, newTopic(name, 1, 1)))
	}
	s.send("no partitions", create(false, newTopic(s.nameOf("a"), 0, 1)))
	s.send("negative partitions", create(false, newTopic(s.nameOf("a"), -2, 1)))
	s.send("replication factor", create(false, newTopic(s.nameOf("r"), 1, 0)))
	s.send("twice", create(false, newTopic(s.nameOf("t"), 1, 1), newTopic(s.nameOf("t"), 2, 1)))
	s.send("unknown config", create(false, newTopic(s.nameOf("a"), 1, 1, "no.such.config", "1")))
	s.send("invalid config", create(false, newTopic(s.nameOf("a"), 1, 1, "retention.ms", "x")))
	null := newTopic(s.nameOf("n"), 1, 1)
	null.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms"}}
	s.send("null config", create(false, null))
	gap := newTopic(s.nameOf("g"), -1, -1)
	gap.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 1, Replicas: []int32{1}}}
	s.send("assignment with a gap", create(false, gap))
	both := newTopic(s.nameOf("h"), 1, 1)
	both.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{1}}}
	s.send("assignment and count", create(false, both))
}

func long(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
	}
	return string(b)
}

func validateTopics(s *script) {
	s.topic("old", 1)
	s.send("valid", create(true, newTopic(s.nameOf("a"), 3, 1, "retention.ms", "1000")))
	s.send("exists", create(true, newTopic(s.nameOf("old"), 1, 1)))
	s.send("partitions", create(true, newTopic(s.nameOf("a"), 0, 1)))
	s.send("config", create(true, newTopic(s.nameOf("a"), 1, 1, "retention.ms", "x")))
	s.send("still absent", metadataOf(false, s.nameOf("a")))
}

func deleteTopics(s *script) {
	name, _ := s.topic("a", 1)
	r := kmsg.NewPtrDeleteTopicsRequest()
	r.TimeoutMillis, r.TopicNames = 10_000, []string{name, s.nameOf("unknown"), "a/b"}
	s.send("delete", r)
	s.send("again", r)
}

func deleteTopicsByID(s *script) {
	row := func(name *string, id [16]byte) kmsg.DeleteTopicsRequestTopic {
		return kmsg.DeleteTopicsRequestTopic{Topic: name, TopicID: id}
	}
	remove := func(rows ...kmsg.DeleteTopicsRequestTopic) *kmsg.DeleteTopicsRequest {
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.TimeoutMillis, r.Topics = 10_000, rows
		return r
	}
	name, id := s.topic("a", 1)
	s.send("name and id", remove(row(&name, id)))
	s.send("name and id of none", remove(row(text(s.nameOf("none")), bogusID)))
	s.send("neither", remove(row(nil, [16]byte{})))
	s.send("unknown id", remove(row(nil, bogusID)))
	s.send("twice", remove(row(&name, [16]byte{}), row(&name, [16]byte{})))
	s.send("valid with one of both", remove(row(text(s.nameOf("none")), bogusID), row(text(s.nameOf("x")), [16]byte{})))
	_, other := s.topic("b", 1)
	s.send("by id", remove(row(nil, other)))
	s.topic("c", 1)
	s.send("by name", remove(row(text(s.nameOf("c")), [16]byte{})))
}

func metadataOf(create bool, names ...string) *kmsg.MetadataRequest {
	r := kmsg.NewPtrMetadataRequest()
	r.AllowAutoTopicCreation = create
	for _, name := range names {
		r.Topics = append(r.Topics, kmsg.MetadataRequestTopic{Topic: text(name)})
	}
	return r
}

func metadata(s *script) {
	s.topic("a", 2)
	s.send("one topic", metadataOf(false, s.nameOf("a")))
	s.send("repeated", metadataOf(false, s.nameOf("a"), s.nameOf("a")))
	for _, name := range []string{"a/b", "", "..", long(250)} {
		s.send("name "+name[:min(len(name), 5)], metadataOf(false, name))
	}
	if s.version >= 4 {
		s.send("unknown", metadataOf(false, s.nameOf("unknown")))
	}
	s.send("all", kmsg.NewPtrMetadataRequest())
	if s.version >= 1 {
		none := kmsg.NewPtrMetadataRequest()
		none.Topics = []kmsg.MetadataRequestTopic{}
		s.send("none", none)
	}
}

func metadataCreates(s *script) {
	s.send("create", metadataOf(true, s.nameOf("new")))
	s.leads("new")
	s.send("created", metadataOf(true, s.nameOf("new")))
}

func metadataByID(s *script) {
	name, id := s.topic("a", 1)
	by := func(name *string, id [16]byte) *kmsg.MetadataRequest {
		r := kmsg.NewPtrMetadataRequest()
		r.Topics = []kmsg.MetadataRequestTopic{{Topic: name, TopicID: id}}
		return r
	}
	s.send("id", by(nil, id))
	s.send("unknown id", by(nil, bogusID))
	s.send("name and id", by(&name, id))
	s.send("neither", by(nil, [16]byte{}))
}

func createPartitions(s *script) {
	name, _ := s.topic("a", 2)
	grow := func(validateOnly bool, topic string, count int32) *kmsg.CreatePartitionsRequest {
		r := kmsg.NewPtrCreatePartitionsRequest()
		row := kmsg.NewCreatePartitionsRequestTopic()
		row.Topic, row.Count = topic, count
		r.TimeoutMillis, r.ValidateOnly, r.Topics = 10_000, validateOnly, append(r.Topics, row)
		return r
	}
	s.send("same", grow(false, name, 2))
	s.send("fewer", grow(false, name, 1))
	s.send("negative", grow(false, name, -1))
	s.send("unknown", grow(false, s.nameOf("unknown"), 3))
	s.send("validate", grow(true, name, 3))
	twice := grow(false, name, 3)
	twice.Topics = append(twice.Topics, twice.Topics[0])
	s.send("twice", twice)
	assigned := grow(false, name, 3)
	assigned.Topics[0].Assignment = []kmsg.CreatePartitionsRequestTopicAssignment{{Replicas: []int32{1}}}
	s.send("assigned", assigned)
	assigned.Topics[0].Count = 6
	s.send("wrong assignment", assigned)
}

func describePartitions(s *script) {
	a, _ := s.topic("a", 2)
	b, _ := s.topic("b", 2)
	describe := func(limit int32, names ...string) *kmsg.DescribeTopicPartitionsRequest {
		r := kmsg.NewPtrDescribeTopicPartitionsRequest()
		r.ResponsePartitionLimit = limit
		for _, name := range names {
			r.Topics = append(r.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: name})
		}
		return r
	}
	s.send("two", describe(2000, b, a))
	s.send("page", describe(3, a, b))
	s.send("unknown", describe(10, s.nameOf("unknown"), "a/b"))
	next := describe(10, a, b)
	next.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: b, Partition: 1}
	s.send("cursor", next)
	next.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: b, Partition: -1}
	s.send("wrong cursor", next)
	s.send("no limit", describe(0, a))
}
