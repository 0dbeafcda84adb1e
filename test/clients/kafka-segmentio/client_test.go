package segmentio_test

import (
	"errors"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// TestTopics creates, grows, configures and deletes topics with single requests.
func TestTopics(t *testing.T) {
	t.Parallel()
	c, ctx := client(t), short(t)
	topic := topic(t, c, "admin", 1, kafka.ConfigEntry{ConfigName: "retention.ms", ConfigValue: "3600000"})
	again, err := c.CreateTopics(ctx,
		&kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}}})
	if err != nil || !errors.Is(again.Errors[topic], kafka.TopicAlreadyExists) {
		t.Errorf("create again: got %+v, %v; want %v", again, err, kafka.TopicAlreadyExists)
	}
	grown, err := c.CreatePartitions(ctx,
		&kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: 3}}})
	if err != nil || grown.Errors[topic] != nil {
		t.Errorf("grow: got %+v, %v; want success", grown, err)
	}
	value := func(name string) string {
		t.Helper()
		all, err := c.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
			Resources: []kafka.DescribeConfigRequestResource{{
				ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{name},
			}},
		})
		if err != nil || len(all.Resources) != 1 || len(all.Resources[0].ConfigEntries) != 1 {
			t.Fatalf("%s: got %+v, %v; want one entry", name, all, err)
		}
		return all.Resources[0].ConfigEntries[0].ConfigValue
	}
	if got := value("retention.ms"); got != "3600000" {
		t.Errorf("retention.ms: got %s, want 3600000", got)
	}
	_, err = c.IncrementalAlterConfigs(ctx,
		&kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{
				Name: "retention.ms", Value: "7200000",
				ConfigOperation: kafka.ConfigOperationSet,
			}},
		}}})
	if got := value("retention.ms"); err != nil || got != "7200000" {
		t.Errorf("retention.ms after a change: got %s, %v; want 7200000", got, err)
	}
	_, err = c.AlterConfigs(ctx, &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		Configs: []kafka.AlterConfigRequestConfig{{Name: "max.message.bytes", Value: "200000"}},
	}}})
	if a, b := value("retention.ms"), value("max.message.bytes"); err != nil || a != "604800000" || b != "200000" {
		t.Errorf("after replacing the configuration: got %s and %s, %v; want the default and 200000", a, b, err)
	}
	deleted, err := c.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic, unique("unknown")}})
	if err != nil || deleted.Errors[topic] != nil || len(deleted.Errors) != 2 {
		t.Errorf("delete: got %+v, %v; want success and an unknown topic", deleted, err)
	}
}

// TestProduceFetch produces and fetches with single requests, and looks up offsets.
func TestProduceFetch(t *testing.T) {
	t.Parallel()
	c, ctx := client(t), short(t)
	topic := topic(t, c, "fetch", 1)
	now := time.UnixMilli(1700000000000)
	produced, err := c.Produce(ctx,
		&kafka.ProduceRequest{
			Topic: topic, RequiredAcks: kafka.RequireAll, Compression: kafka.Zstd,
			Records: kafka.NewRecordReader(
				kafka.Record{Time: now, Key: kafka.NewBytes([]byte("k")), Value: kafka.NewBytes([]byte("one"))},
				kafka.Record{Time: now.Add(time.Second), Value: kafka.NewBytes([]byte("two"))},
			),
		})
	if err != nil || produced.Error != nil || produced.BaseOffset != 0 {
		t.Fatalf("produce: got %+v, %v; want offset 0", produced, err)
	}
	fetched, err := c.Fetch(ctx, &kafka.FetchRequest{
		Topic: topic, Offset: 1, MinBytes: 1, MaxBytes: 1 << 20,
		MaxWait: time.Second,
	})
	if err != nil || fetched.Error != nil || fetched.HighWatermark != 2 {
		t.Fatalf("fetch: got %+v, %v; want watermark 2", fetched, err)
	}
	record, err := fetched.Records.ReadRecord()
	for err == nil && record.Offset < 1 { // the server returns whole batches
		record, err = fetched.Records.ReadRecord()
	}
	if err != nil || record.Offset != 1 || !record.Time.Equal(now.Add(time.Second)) {
		t.Errorf("record: got %+v, %v; want the second", record, err)
	}
	if beyond, err := c.Fetch(ctx, &kafka.FetchRequest{
		Topic: topic, Offset: 9, MinBytes: 1, MaxBytes: 1 << 20,
		MaxWait: time.Second,
	}); err != nil || !errors.Is(beyond.Error, kafka.OffsetOutOfRange) {
		t.Errorf("fetch beyond the end: got %+v, %v; want %v", beyond, err, kafka.OffsetOutOfRange)
	}
	listed, err := c.ListOffsets(ctx,
		&kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {
			kafka.FirstOffsetOf(0),
			kafka.LastOffsetOf(0), kafka.TimeOffsetOf(0, now.Add(time.Millisecond)),
		}}})
	if err != nil || listed.Topics[topic][0].FirstOffset != 0 || listed.Topics[topic][0].LastOffset != 2 {
		t.Errorf("offsets: got %+v, %v; want 0 and 2", listed, err)
	}
	for at := range listed.Topics[topic][0].Offsets {
		if at != 1 {
			t.Errorf("offset at a time: got %d, want 1", at)
		}
	}
	id, err := c.InitProducerID(ctx, &kafka.InitProducerIDRequest{})
	if err != nil || id.Error != nil || id.Producer.ProducerID < 0 {
		t.Errorf("producer id: got %+v, %v; want one", id, err)
	}
}

// TestGroupRequests goes through the life cycle of a member with single requests, and
// commits and deletes the group's offsets.
func TestGroupRequests(t *testing.T) {
	t.Parallel()
	c, ctx := client(t), short(t)
	topic, group := topic(t, c, "group", 2), unique("group")
	found, err := c.FindCoordinator(ctx,
		&kafka.FindCoordinatorRequest{Addr: c.Addr, Key: group, KeyType: kafka.CoordinatorKeyTypeConsumer})
	if err != nil || found.Error != nil || found.Coordinator == nil || found.Coordinator.NodeID != 1 {
		t.Fatalf("coordinator: got %+v, %v; want broker 1", found, err)
	}
	join := &kafka.JoinGroupRequest{
		GroupID: group, SessionTimeout: 10 * time.Second, RebalanceTimeout: 10 * time.Second, ProtocolType: "consumer",
		Protocols: []kafka.GroupProtocol{{
			Name:     "roundrobin",
			Metadata: kafka.GroupProtocolSubscription{Topics: []string{topic}},
		}},
	}
	joined, err := c.JoinGroup(ctx, join)
	if err == nil && errors.Is(joined.Error, kafka.MemberIDRequired) {
		join.MemberID = joined.MemberID
		joined, err = c.JoinGroup(ctx, join)
	}
	if err != nil || joined.Error != nil || joined.LeaderID != joined.MemberID || len(joined.Members) != 1 {
		t.Fatalf("join: got %+v, %v; want to be the leader", joined, err)
	}
	synced, err := c.SyncGroup(ctx, &kafka.SyncGroupRequest{
		GroupID: group, GenerationID: joined.GenerationID, MemberID: joined.MemberID, ProtocolType: "consumer",
		ProtocolName: "roundrobin",
		Assignments: []kafka.SyncGroupRequestAssignment{{
			MemberID:   joined.MemberID,
			Assignment: kafka.GroupProtocolAssignment{AssignedPartitions: map[string][]int{topic: {0, 1}}},
		}},
	})
	if err != nil || synced.Error != nil || len(synced.Assignment.AssignedPartitions[topic]) != 2 {
		t.Errorf("sync: got %+v, %v; want both partitions", synced, err)
	}
	// This client ignores the error code of the heartbeat response.
	if _, err := c.Heartbeat(ctx, &kafka.HeartbeatRequest{
		GroupID: group, GenerationID: int32(joined.GenerationID),
		MemberID: joined.MemberID,
	}); err != nil {
		t.Errorf("heartbeat: %v", err)
	}
	commit := func(generation int, member string) error {
		t.Helper()
		committed, err := c.OffsetCommit(ctx,
			&kafka.OffsetCommitRequest{
				GroupID: group, GenerationID: generation, MemberID: member,
				Topics: map[string][]kafka.OffsetCommit{topic: {
					{Partition: 0, Offset: 10},
					{Partition: 1, Offset: 20},
				}},
			})
		do(t, err)
		return committed.Topics[topic][0].Error
	}
	do(t, commit(joined.GenerationID, joined.MemberID))
	if err := commit(joined.GenerationID, "somebody"); !errors.Is(err, kafka.UnknownMemberId) {
		t.Errorf("commit of an unknown member: got %v, want %v", err, kafka.UnknownMemberId)
	}
	left, err := c.LeaveGroup(ctx,
		&kafka.LeaveGroupRequest{GroupID: group, Members: []kafka.LeaveGroupRequestMember{{ID: joined.MemberID}}})
	if err != nil || left.Error != nil {
		t.Errorf("leave: got %+v, %v; want success", left, err)
	}
	do(t, commit(-1, "")) // a group without members accepts commits of non-members
	offsets, err := c.OffsetFetch(ctx,
		&kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0, 1}}})
	if err != nil || offsets.Topics[topic][0].CommittedOffset != 10 || offsets.Topics[topic][1].CommittedOffset != 20 {
		t.Errorf("offsets: got %+v, %v; want 10 and 20", offsets, err)
	}
	listed, err := c.ListGroups(ctx, &kafka.ListGroupsRequest{})
	do(t, err)
	seen := false
	for _, g := range listed.Groups {
		seen = seen || g.GroupID == group
	}
	if !seen {
		t.Errorf("groups: got %+v, want %s among them", listed.Groups, group)
	}
	removed, err := c.OffsetDelete(ctx,
		&kafka.OffsetDeleteRequest{GroupID: group, Topics: map[string][]int{topic: {1}}})
	if err != nil || removed.Error != nil {
		t.Errorf("delete an offset: got %+v, %v; want success", removed, err)
	}
	deleted, err := c.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err != nil || deleted.Errors[group] != nil {
		t.Errorf("delete: got %+v, %v; want success", deleted, err)
	}
}

// TestAPIVersions checks that the server advertises the versions that this client uses.
func TestAPIVersions(t *testing.T) {
	t.Parallel()
	c := client(t)
	all, err := c.ApiVersions(short(t), &kafka.ApiVersionsRequest{})
	do(t, err)
	versions := map[int][2]int{}
	for _, a := range all.ApiKeys {
		versions[a.ApiKey] = [2]int{a.MinVersion, a.MaxVersion}
	}
	for key, want := range map[int][2]int{0: {0, 13}, 1: {4, 17}, 3: {0, 13}, 11: {0, 9}} {
		if versions[key] != want {
			t.Errorf("API %d: got versions %v, want %v", key, versions[key], want)
		}
	}
}
