package sarama_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/IBM/sarama"
)

// entries returns a configuration from pairs of names and values.
func entries(pairs ...string) map[string]*string {
	all := map[string]*string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = &pairs[i+1]
	}
	return all
}

func configOf(t *testing.T, a sarama.ClusterAdmin, topic, name string) sarama.ConfigEntry {
	t.Helper()
	found, err := a.DescribeConfig(sarama.ConfigResource{
		Type: sarama.TopicResource, Name: topic,
		ConfigNames: []string{name},
	})
	if err != nil || len(found) != 1 {
		t.Fatalf("%s of %s: got %v, %v; want one entry", name, topic, found, err)
	}
	return found[0]
}

// TestTopics creates, grows, configures, truncates and deletes a topic, with current and
// older protocol versions.
func TestTopics(t *testing.T) {
	t.Parallel()
	for _, version := range []sarama.KafkaVersion{sarama.V1_1_0_0, sarama.V2_8_0_0, sarama.MaxVersion} {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			conf := config(t)
			conf.Version = version
			a, name := admin(t, conf), unique("admin")
			detail := &sarama.TopicDetail{
				NumPartitions: 2, ReplicationFactor: 1,
				ConfigEntries: entries("retention.ms", "3600000"),
			}
			do(t, a.CreateTopic(name, detail, true))
			if all, err := a.ListTopics(); err != nil || all[name].NumPartitions != 0 {
				t.Errorf("a validated topic: got %+v, %v; want none", all[name], err)
			}
			do(t, a.CreateTopic(name, detail, false))
			if err := a.CreateTopic(name, detail, false); !errors.Is(err, sarama.ErrTopicAlreadyExists) {
				t.Errorf("create again: got %v, want %v", err, sarama.ErrTopicAlreadyExists)
			}
			if err := a.CreateTopic(unique("bad"),
				&sarama.TopicDetail{
					NumPartitions: 1, ReplicationFactor: 1,
					ConfigEntries: entries("no.such.thing", "1"),
				}, false); !errors.Is(err, sarama.ErrInvalidConfig) {
				t.Errorf("create with a setting that does not exist: got %v, want %v", err, sarama.ErrInvalidConfig)
			}
			if err := a.CreateTopic(unique("zero"), &sarama.TopicDetail{NumPartitions: 0, ReplicationFactor: 1},
				false); !errors.Is(err, sarama.ErrInvalidPartitions) {
				t.Errorf("create without partitions: got %v, want %v", err, sarama.ErrInvalidPartitions)
			}
			do(t, a.CreatePartitions(name, 4, nil, false))
			if err := a.CreatePartitions(name, 3, nil, false); !errors.Is(err, sarama.ErrInvalidPartitions) {
				t.Errorf("fewer partitions: got %v, want %v", err, sarama.ErrInvalidPartitions)
			}
			described, err := a.DescribeTopics([]string{name})
			if err != nil || len(described) != 1 || len(described[0].Partitions) != 4 ||
				described[0].Partitions[0].Leader != 1 || !slices.Equal(described[0].Partitions[0].Isr, []int32{1}) {
				t.Errorf("describe: got %+v, %v; want four partitions of broker 1", described, err)
			}
			if got := configOf(t, a, name, "retention.ms"); got.Value != "3600000" || got.Default {
				t.Errorf("retention.ms: got %+v, want 3600000, set by the topic", got)
			}
			do(t, a.AlterConfig(sarama.TopicResource, name, entries("retention.bytes", "1000000"), false))
			if a, b := configOf(t, a, name, "retention.ms"),
				configOf(t, a, name, "retention.bytes"); a.Value != "604800000" || b.Value != "1000000" {
				t.Errorf("after replacing the configuration: got %+v and %+v, want the default and 1000000", a, b)
			}
			if version.IsAtLeast(sarama.V2_3_0_0) {
				value := "LogAppendTime"
				do(t, a.IncrementalAlterConfig(sarama.TopicResource, name,
					map[string]sarama.IncrementalAlterConfigsEntry{
						"message.timestamp.type": {
							Operation: sarama.IncrementalAlterConfigsOperationSet,
							Value:     &value,
						},
						"retention.bytes": {Operation: sarama.IncrementalAlterConfigsOperationDelete},
					}, false))
				if a, b := configOf(t, a, name, "message.timestamp.type"),
					configOf(t, a, name, "retention.bytes"); a.Value != value || b.Value != "-1" {
					t.Errorf("after changing two settings: got %+v and %+v, want %s and -1", a, b, value)
				}
			}
			produce(t, name, 4, "x")
			do(t, a.DeleteRecords(name, map[int32]int64{0: 1, 1: -1}))
			if err := a.DeleteRecords(name, map[int32]int64{0: 5}); err == nil {
				t.Error("deleting records beyond the end: got success, want an error")
			}
			do(t, a.DeleteTopic(name))
			if err := a.DeleteTopic(name); !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
				t.Errorf("delete again: got %v, want %v", err, sarama.ErrUnknownTopicOrPartition)
			}
		})
	}
}

// TestGroups lists, describes, resets and deletes a consumer group.
func TestGroups(t *testing.T) {
	t.Parallel()
	a, topic, group := admin(t, config(t)), topic(t, "groups", 2), unique("groups")
	produce(t, topic, 2, "x")
	m := join(t, config(t), group, topic)
	m.claims(t, topic, 2)
	within(t, m.messages, "a record")
	within(t, m.messages, "a record")
	if all, err := a.ListConsumerGroups(); err != nil || all[group] != "consumer" {
		t.Errorf("groups: got %v, %v; want %s of type consumer", all, err, group)
	}
	described, err := a.DescribeConsumerGroups([]string{group, unique("nobody")})
	if err != nil || len(described) != 2 || described[0].State != "Stable" || len(described[0].Members) != 1 ||
		described[1].State != "Dead" {
		t.Fatalf("describe: got %+v, %v; want a stable and a dead group", described, err)
	}
	for _, member := range described[0].Members {
		assignment, err := member.GetMemberAssignment()
		if err != nil || len(assignment.Topics[topic]) != 2 || member.ClientId != "sarama" ||
			member.ClientHost != "/127.0.0.1" {
			t.Errorf("member: got %+v with %+v, %v; want two partitions", member, assignment, err)
		}
	}
	if err := a.DeleteConsumerGroup(group); !errors.Is(err, sarama.ErrNonEmptyGroup) {
		t.Errorf("deleting a group with members: got %v, want %v", err, sarama.ErrNonEmptyGroup)
	}
	if err := a.DeleteConsumerGroupOffset(group, topic, 0); !errors.Is(err, sarama.ErrGroupSubscribedToTopic) {
		t.Errorf("deleting an offset that members use: got %v, want %v", err, sarama.ErrGroupSubscribedToTopic)
	}
	m.stop()
	offsets, err := a.ListConsumerGroupOffsets(group, nil)
	if err != nil || offsets.GetBlock(topic, 0).Offset != 1 || offsets.GetBlock(topic, 1).Offset != 1 {
		t.Errorf("offsets: got %+v, %v; want 1 and 1", offsets, err)
	}
	_, err = a.AlterConsumerGroupOffsets(group,
		map[string]map[int32]sarama.OffsetAndMetadata{topic: {1: {Offset: 0, LeaderEpoch: -1, Metadata: "again"}}}, nil)
	do(t, err)
	do(t, a.DeleteConsumerGroupOffset(group, topic, 0))
	offsets, err = a.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1}})
	if err != nil || offsets.GetBlock(topic, 0).Offset != -1 || offsets.GetBlock(topic, 1).Offset != 0 ||
		offsets.GetBlock(topic, 1).Metadata != "again" {
		t.Errorf("offsets: got %+v and %+v, %v; want none and 0", offsets.GetBlock(topic, 0),
			offsets.GetBlock(topic, 1), err)
	}
	do(t, a.DeleteConsumerGroup(group))
	if err := a.DeleteConsumerGroup(group); !errors.Is(err, sarama.ErrGroupIDNotFound) {
		t.Errorf("delete again: got %v, want %v", err, sarama.ErrGroupIDNotFound)
	}
}

// TestCluster checks the cluster information that management tools show.
func TestCluster(t *testing.T) {
	t.Parallel()
	a, topic := admin(t, config(t)), topic(t, "cluster", 1)
	produce(t, topic, 1, "some bytes")
	brokers, controller, err := a.DescribeCluster()
	if err != nil || len(brokers) != 1 || controller != 1 || brokers[0].Addr() != servers()[0] {
		t.Errorf("cluster: got %v with controller %d, %v; want broker 1 at its bootstrap address", brokers,
			controller, err)
	}
	dirs, err := a.DescribeLogDirs([]int32{1})
	if err != nil || len(dirs[1]) != 1 {
		t.Fatalf("log dirs: got %+v, %v; want one", dirs, err)
	}
	at := slices.IndexFunc(dirs[1][0].Topics,
		func(d sarama.DescribeLogDirsResponseTopic) bool { return d.Topic == topic })
	if at < 0 || dirs[1][0].Topics[at].Partitions[0].Size == 0 {
		t.Errorf("log dirs: got %+v, want the size of %s", dirs[1][0], topic)
	}
	if found, err := a.DescribeConfig(sarama.ConfigResource{Type: sarama.BrokerResource, Name: "1"}); err != nil ||
		len(found) == 0 {
		t.Errorf("broker configuration: got %v, %v; want some", found, err)
	}
	offsets, err := a.ListOffsets(map[string]map[int32]int64{topic: {0: sarama.OffsetNewest}}, nil)
	if err != nil || offsets[topic][0].Offset != 1 {
		t.Errorf("offsets: got %+v, %v; want 1", offsets, err)
	}
}
