package confluent_test

import (
	"os"
	"slices"
	"testing"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// TestKafkaTopics creates, grows, configures, truncates and deletes a topic.
func TestKafkaTopics(t *testing.T) {
	t.Parallel()
	a, ctx := newAdmin(t), short(t)
	topic := newTopic(t, "admin", 2, map[string]string{"retention.ms": "3600000"})
	again, err := a.CreateTopics(ctx, []kafka.TopicSpecification{
		{Topic: topic, NumPartitions: 1, ReplicationFactor: 1},
		{Topic: "no good", NumPartitions: 1, ReplicationFactor: 1},
		{Topic: unique("many"), NumPartitions: 5000, ReplicationFactor: 1},
	})
	do(t, err)
	for i, want := range []kafka.ErrorCode{
		kafka.ErrTopicAlreadyExists, kafka.ErrTopicException,
		kafka.ErrInvalidPartitions,
	} {
		if again[i].Error.Code() != want {
			t.Errorf("create %s: got %v, want %v", again[i].Topic, again[i].Error, want)
		}
	}
	grown, err := a.CreatePartitions(ctx, []kafka.PartitionsSpecification{{Topic: topic, IncreaseTo: 4}})
	if err != nil || grown[0].Error.Code() != kafka.ErrNoError {
		t.Errorf("grow: got %v, %v; want success", grown, err)
	}
	described, err := a.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames([]string{topic}),
		kafka.SetAdminOptionIncludeAuthorizedOperations(true))
	if err != nil || len(described.TopicDescriptions) != 1 || len(described.TopicDescriptions[0].Partitions) != 4 ||
		!slices.Contains(described.TopicDescriptions[0].AuthorizedOperations, kafka.ACLOperationWrite) {
		t.Errorf("describe: got %+v, %v; want four writable partitions", described, err)
	}
	resource := func(config ...kafka.ConfigEntry) []kafka.ConfigResource {
		return []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: topic, Config: config}}
	}
	value := func(name string) string {
		t.Helper()
		all, err := a.DescribeConfigs(ctx, resource())
		do(t, err)
		return all[0].Config[name].Value
	}
	changed, err := a.IncrementalAlterConfigs(ctx,
		resource(kafka.ConfigEntry{
			Name: "retention.bytes", Value: "1000",
			IncrementalOperation: kafka.AlterConfigOpTypeSet,
		},
			kafka.ConfigEntry{
				Name: "cleanup.policy", Value: "compact",
				IncrementalOperation: kafka.AlterConfigOpTypeAppend,
			}))
	if err != nil || changed[0].Error.Code() != kafka.ErrNoError || value("retention.bytes") != "1000" ||
		value("retention.ms") != "3600000" || value("cleanup.policy") != "delete,compact" {
		t.Errorf("change: got %v, %v, retention.bytes %s, retention.ms %s, cleanup.policy %s; "+
			"want 1000, 3600000 and both policies", changed, err, value("retention.bytes"), value("retention.ms"),
			value("cleanup.policy"))
	}
	refused, err := a.IncrementalAlterConfigs(ctx,
		resource(kafka.ConfigEntry{
			Name: "min.insync.replicas", Value: "2",
			IncrementalOperation: kafka.AlterConfigOpTypeSet,
		}))
	if err != nil || refused[0].Error.Code() != kafka.ErrInvalidConfig {
		t.Errorf("two replicas: got %v, %v; want %v", refused, err, kafka.ErrInvalidConfig)
	}
	records := []*kafka.Message{to(topic, 0, "a"), to(topic, 0, "b"), to(topic, 1, "c")}
	for _, r := range records {
		r.Key = []byte("k") // compacted topics require a key
	}
	send(t, kafkaConfig(t, nil), records...)
	one := kafka.TopicPartition{Topic: &topic, Partition: 0, Offset: 1}
	cut, err := a.DeleteRecords(ctx, []kafka.TopicPartition{one})
	if err != nil || cut.DeleteRecordsResults[0].TopicPartition.Error != nil ||
		cut.DeleteRecordsResults[0].DeletedRecords.LowWatermark != 1 {
		t.Errorf("delete records: got %+v, %v; want the log to start at 1", cut, err)
	}
	listed, err := a.ListOffsets(ctx,
		map[kafka.TopicPartition]kafka.OffsetSpec{
			{Topic: &topic, Partition: 0}: kafka.EarliestOffsetSpec,
			{Topic: &topic, Partition: 1}: kafka.MaxTimestampOffsetSpec,
		})
	do(t, err)
	for at, found := range listed.ResultInfos {
		if want := map[int32]kafka.Offset{0: 1, 1: 0}[at.Partition]; found.Offset != want ||
			found.Error.Code() != kafka.ErrNoError {
			t.Errorf("offset of partition %d: got %+v, want %d", at.Partition, found, want)
		}
	}
	deleted, err := a.DeleteTopics(ctx, []string{topic, unique("unknown")})
	if err != nil || deleted[0].Error.Code() != kafka.ErrNoError ||
		deleted[1].Error.Code() != kafka.ErrUnknownTopicOrPart {
		t.Errorf("delete: got %v, %v; want success and an unknown topic", deleted, err)
	}
}

// TestKafkaGroupAdmin lists, describes, resets and deletes consumer groups of both
// protocols.
func TestKafkaGroupAdmin(t *testing.T) {
	t.Parallel()
	for protocol, kind := range map[string]kafka.ConsumerGroupType{
		"classic":  kafka.ConsumerGroupTypeClassic,
		"consumer": kafka.ConsumerGroupTypeConsumer,
	} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			a, ctx := newAdmin(t), short(t)
			topic, group := newTopic(t, "groups", 1, nil), unique("groups")
			send(t, kafkaConfig(t, nil), to(topic, 0, "a"), to(topic, 0, "b"))
			c := newConsumer(t, group, kafka.ConfigMap{"group.protocol": protocol, "client.id": "me"})
			do(t, c.SubscribeTopics([]string{topic}, nil))
			_, err := c.CommitMessage(receive(t, c))
			do(t, err)
			listed, err := a.ListConsumerGroups(ctx,
				kafka.SetAdminMatchConsumerGroupTypes([]kafka.ConsumerGroupType{kind}))
			do(t, err)
			if !slices.ContainsFunc(listed.Valid, func(g kafka.ConsumerGroupListing) bool {
				return g.GroupID == group && g.Type == kind && g.State == kafka.ConsumerGroupStateStable
			}) {
				t.Errorf("groups: got %+v, want %s, stable", listed.Valid, group)
			}
			described, err := a.DescribeConsumerGroups(ctx, []string{group})
			do(t, err)
			if g := described.ConsumerGroupDescriptions[0]; g.Error.Code() != kafka.ErrNoError ||
				g.State != kafka.ConsumerGroupStateStable || len(g.Members) != 1 || g.Members[0].ClientID != "me" ||
				len(g.Members[0].Assignment.TopicPartitions) != 1 {
				t.Errorf("describe: got %+v, want a stable group with one member", g)
			}
			code := func() kafka.ErrorCode {
				t.Helper()
				deleted, err := a.DeleteConsumerGroups(ctx, []string{group})
				do(t, err)
				return deleted.ConsumerGroupResults[0].Error.Code()
			}
			if got := code(); got != kafka.ErrNonEmptyGroup {
				t.Errorf("deleting a group with members: got %v, want %v", got, kafka.ErrNonEmptyGroup)
			}
			do(t, c.Close())
			at := kafka.TopicPartition{Topic: &topic, Partition: 0}
			request := []kafka.ConsumerGroupTopicPartitions{{Group: group, Partitions: []kafka.TopicPartition{at}}}
			offsets, err := a.ListConsumerGroupOffsets(ctx, request)
			if err != nil || offsets.ConsumerGroupsTopicPartitions[0].Partitions[0].Offset != 1 {
				t.Errorf("offsets: got %+v, %v; want 1", offsets, err)
			}
			request[0].Partitions[0].Offset = 0
			_, err = a.AlterConsumerGroupOffsets(ctx, request)
			do(t, err)
			again := newConsumer(t, group, nil)
			do(t, again.SubscribeTopics([]string{topic}, nil))
			if m := receive(t, again); string(m.Value) != "a" {
				t.Errorf("after the reset: got %q, want a", m.Value)
			}
			do(t, again.Close())
			if first, second := code(), code(); first != kafka.ErrNoError || second != kafka.ErrGroupIDNotFound {
				t.Errorf("delete twice: got %v and %v, want success and %v", first, second, kafka.ErrGroupIDNotFound)
			}
		})
	}
}

// TestKafkaCluster checks the cluster information that management tools show.
func TestKafkaCluster(t *testing.T) {
	t.Parallel()
	a, ctx := newAdmin(t), short(t)
	cluster, err := a.DescribeCluster(ctx, kafka.SetAdminOptionIncludeAuthorizedOperations(true))
	if err != nil || cluster.ClusterID == nil || len(*cluster.ClusterID) != 22 || len(cluster.Nodes) != 1 ||
		cluster.Controller == nil || cluster.Controller.ID != 1 ||
		!slices.Contains(cluster.AuthorizedOperations, kafka.ACLOperationDescribe) {
		t.Errorf("cluster: got %+v, %v; want one broker", cluster, err)
	}
	found, err := a.DescribeConfigs(ctx, []kafka.ConfigResource{{Type: kafka.ResourceBroker, Name: "1"}})
	if err != nil || found[0].Error.Code() != kafka.ErrNoError ||
		found[0].Config["advertised.listeners"].Value != "SASL_PLAINTEXT://"+os.Getenv("FRESHET_STREAM") {
		t.Errorf("broker configuration: got %+v, %v; want the listeners", found, err)
	}
	found, err = a.DescribeConfigs(ctx, []kafka.ConfigResource{{Type: kafka.ResourceGroup, Name: "any"}})
	if err != nil || found[0].Error.Code() != kafka.ErrNoError ||
		found[0].Config["consumer.session.timeout.ms"].Value != "45000" {
		t.Errorf("group configuration: got %+v, %v; want the session timeout", found, err)
	}
}
