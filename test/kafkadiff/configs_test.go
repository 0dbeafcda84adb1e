package kafkadiff

import "github.com/twmb/franz-go/pkg/kmsg"

func configCases() []conversation {
	return []conversation{
		{name: "describe configs", key: keyDescribeConfigs, run: describeConfigs},
		{name: "alter configs", key: keyAlterConfigs, run: alterConfigs},
		{name: "incremental alter configs", key: keyIncrementalAlterConfigs, run: incrementalAlterConfigs},
		{name: "config values", key: keyIncrementalAlterConfigs, run: configValues},
		{name: "list config resources", key: keyListConfigResources, run: listConfigResources},
	}
}

const (
	topicResource  = kmsg.ConfigResourceTypeTopic
	brokerResource = kmsg.ConfigResourceTypeBroker
)

// configsOf returns a request for configurations; no names mean all.
func configsOf(kind kmsg.ConfigResourceType, resource string, names ...string) *kmsg.DescribeConfigsRequest {
	r := kmsg.NewPtrDescribeConfigsRequest()
	r.IncludeSynonyms = true
	row := kmsg.NewDescribeConfigsRequestResource()
	row.ResourceType, row.ResourceName, row.ConfigNames = kind, resource, names
	r.Resources = append(r.Resources, row)
	return r
}

func describeConfigs(s *script) {
	name, _ := s.topic("a", 1, "retention.ms", "1000")
	s.send("all", configsOf(topicResource, name))
	s.send("some", configsOf(topicResource, name, "retention.ms", "cleanup.policy", "no.such.config"))
	s.send("unknown topic", configsOf(topicResource, s.nameOf("unknown")))
	s.send("illegal topic", configsOf(topicResource, "a/b"))
	s.send("unknown broker", configsOf(brokerResource, "99"))
	s.send("broker that is no number", configsOf(brokerResource, "x"))
	s.send("type 77", configsOf(77, "x"))
	s.send("group", configsOf(kmsg.ConfigResourceTypeGroupConfig, s.nameOf("g"), "consumer.session.timeout.ms"))
}

func alterConfigs(s *script) {
	name, _ := s.topic("a", 1, "retention.ms", "1000")
	alter := func(validateOnly bool, kind kmsg.ConfigResourceType, topic string, pairs ...string) kmsg.Request {
		r := kmsg.NewPtrAlterConfigsRequest()
		r.ValidateOnly = validateOnly
		row := kmsg.NewAlterConfigsRequestResource()
		row.ResourceType, row.ResourceName = kind, topic
		for i := 0; i+1 < len(pairs); i += 2 {
			row.Configs = append(row.Configs,
				kmsg.AlterConfigsRequestResourceConfig{Name: pairs[i], Value: &pairs[i+1]})
		}
		r.Resources = append(r.Resources, row)
		return r
	}
	s.send("validate", alter(true, topicResource, name, "retention.ms", "5000"))
	s.send("invalid", alter(false, topicResource, name, "retention.ms", "x"))
	s.send("unknown", alter(false, topicResource, name, "no.such.config", "x"))
	s.send("twice", alter(false, topicResource, name, "retention.ms", "1", "retention.ms", "2"))
	s.send("unknown topic", alter(false, topicResource, s.nameOf("unknown"), "retention.ms", "1"))
	s.send("type 77", alter(false, 77, name, "retention.ms", "1"))
	s.send("replace", alter(false, topicResource, name, "max.message.bytes", "5000"))
	null := kmsg.NewPtrAlterConfigsRequest()
	null.Resources = []kmsg.AlterConfigsRequestResource{{
		ResourceType: topicResource, ResourceName: name,
		Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "retention.ms"}},
	}}
	s.send("null", null)
	s.send("nothing", alter(false, topicResource, name))
}

// The operations of IncrementalAlterConfigs.
const (
	opSet, opDelete    = kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpDelete
	opAppend, opRemove = kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract
	retention          = "retention.ms"
	cleanup            = "cleanup.policy"
)

// change returns a request with one change of a topic's configuration.
func change(topic string, op kmsg.IncrementalAlterConfigOp, name string,
	value *string,
) *kmsg.IncrementalAlterConfigsRequest {
	r := kmsg.NewPtrIncrementalAlterConfigsRequest()
	row := kmsg.NewIncrementalAlterConfigsRequestResource()
	row.ResourceType, row.ResourceName = topicResource, topic
	row.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: name, Op: op, Value: value}}
	r.Resources = append(r.Resources, row)
	return r
}

func incrementalAlterConfigs(s *script) {
	name, _ := s.topic("a", 1)
	s.send("set", change(name, opSet, retention, text("1000")))
	s.send("set null", change(name, opSet, retention, nil))
	s.send("delete", change(name, opDelete, retention, nil))
	s.send("delete again", change(name, opDelete, retention, nil))
	s.send("delete with a value", change(name, opDelete, retention, text("1")))
	s.send("delete unknown", change(name, opDelete, "no.such.config", nil))
	s.send("set unknown", change(name, opSet, "no.such.config", text("1")))
	s.send("append to a number", change(name, opAppend, retention, text("1")))
	s.send("append", change(name, opAppend, cleanup, text("compact")))
	s.send("append again", change(name, opAppend, cleanup, text("compact")))
	s.send("append nonsense", change(name, opAppend, cleanup, text("nonsense")))
	s.send("subtract", change(name, opRemove, cleanup, text("compact")))
	s.send("subtract the last", change(name, opRemove, cleanup, text("delete")))
	s.send("subtract absent", change(name, opRemove, cleanup, text("compact")))
	s.send("operation 9", change(name, 9, retention, text("1")))
	s.send("unknown topic", change(s.nameOf("unknown"), opSet, retention, text("1")))
	twice := change(name, opSet, retention, text("1"))
	twice.Resources[0].Configs = append(twice.Resources[0].Configs, twice.Resources[0].Configs[0])
	s.send("twice", twice)
	validate := change(name, opSet, retention, text("7"))
	validate.ValidateOnly = true
	s.send("validate", validate)
	both := change(name, opSet, retention, text("1"))
	both.Resources = append(both.Resources, both.Resources[0])
	s.send("resource twice", both)
}

func configValues(s *script) {
	name, _ := s.topic("a", 1)
	for _, c := range []struct{ name, value string }{
		{"compression.gzip.level", "0"},
		{"compression.gzip.level", "10"},
		{"compression.gzip.level", "-1"},
		{"compression.gzip.level", "9"},
		{"compression.gzip.level", "-2"},
		{"compression.lz4.level", "0"},
		{"compression.lz4.level", "17"},
		{"compression.lz4.level", "18"},
		{"compression.zstd.level", "22"},
		{"compression.zstd.level", "23"},
		{"compression.zstd.level", "-131073"},
		{"compression.zstd.level", "-131072"},
		{"compression.zstd.level", "0"},
		{"compression.type", "lz4"},
		{"compression.type", "nonsense"},
		{"compression.type", "none"},
		{"retention.bytes", "-2"},
		{"retention.bytes", "-1"},
		{"retention.bytes", "0"},
		{"retention.ms", "-1"},
		{"retention.ms", "-2"},
		{"retention.ms", "9223372036854775807"},
		{"retention.ms", "9223372036854775808"},
		{"retention.ms", " 5 "},
		{"retention.ms", ""},
		{"retention.ms", "+5"},
		{"cleanup.policy", ""},
		{"cleanup.policy", "delete,delete"},
		{"cleanup.policy", "compact,delete"},
		{"cleanup.policy", "compact, delete"},
		{"cleanup.policy", "Delete"},
		{"cleanup.policy", "delete,"},
		{"max.message.bytes", "-1"},
		{"max.message.bytes", "0"},
		{"max.message.bytes", "1000000"},
		{"message.timestamp.type", "createtime"},
		{"message.timestamp.type", "LogAppendTime"},
		{"message.timestamp.before.max.ms", "-1"},
		{"message.timestamp.after.max.ms", "-1"},
		{"min.cleanable.dirty.ratio", "1.1"},
		{"min.cleanable.dirty.ratio", "-0.1"},
		{"min.cleanable.dirty.ratio", "0.25"},
		{"min.cleanable.dirty.ratio", "NaN"},
		{"preallocate", "TRUE"},
		{"preallocate", "yes"},
		{"preallocate", "true"},
		{"segment.bytes", "13"},
		{"segment.bytes", "1048575"},
		{"segment.bytes", "2147483648"},
		{"segment.bytes", "1048576"},
		{"segment.ms", "0"},
		{"segment.jitter.ms", "-1"},
		{"segment.index.bytes", "3"},
		{"index.interval.bytes", "-1"},
		{"file.delete.delay.ms", "-1"},
		{"delete.retention.ms", "-1"},
		{"min.compaction.lag.ms", "-1"},
		{"max.compaction.lag.ms", "0"},
		{"max.compaction.lag.ms", "1"},
		{"min.insync.replicas", "0"},
		{"min.insync.replicas", "2"},
		{"flush.ms", "-1"},
		{"flush.messages", "0"},
		{"unclean.leader.election.enable", "true"},
	} {
		s.send(c.name+"="+c.value, change(name, opSet, c.name, &c.value))
	}
}

func listConfigResources(s *script) {
	list := func(types ...int8) *kmsg.ListConfigResourcesRequest {
		r := kmsg.NewPtrListConfigResourcesRequest()
		r.ResourceTypes = types
		return r
	}
	s.send("client metrics", list(16))
	if s.version >= 1 {
		s.send("unknown type", list(77))
		s.send("brokers", list(4))
	}
}

func adminCases() []conversation {
	return []conversation{
		{name: "describe cluster", key: keyDescribeCluster, run: describeCluster},
		{name: "describe log dirs", key: keyDescribeLogDirs, run: describeLogDirs},
	}
}

func describeCluster(s *script) {
	r := kmsg.NewPtrDescribeClusterRequest()
	r.EndpointType = 1
	s.send("brokers", r)
	if s.version >= 1 {
		r.EndpointType = 7
		s.send("endpoint type 7", r)
	}
}

func describeLogDirs(s *script) {
	name, id := s.topic("a", 1)
	s.do(s.produce("a", id, 0, (&batch{values: []string{"a"}}).bytes()))
	r := kmsg.NewPtrDescribeLogDirsRequest()
	r.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: name, Partitions: []int32{0, 5}}}
	s.send("one partition", r)
}
