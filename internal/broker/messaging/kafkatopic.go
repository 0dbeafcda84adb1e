package messaging

import (
	"context"

	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// KafkaTopic is a topic as the Kafka protocol uses it: partitions are logs of batches, and an
// offset is the engine's entry number.
type KafkaTopic struct {
	log   *KafkaLog
	topic *topic
	live  *liveTopic
	rules *rules
}

// Name returns the topic's name.
func (t *KafkaTopic) Name() names.Topic { return t.topic.name }

// ID returns the topic's incarnation number.
func (t *KafkaTopic) ID() uint64 { return uint64(t.topic.id) }

// Partitions returns the number of partitions. An unpartitioned topic has one.
func (t *KafkaTopic) Partitions() int32 { return max(t.topic.partitions, 1) }

// HasPartition reports whether the topic has a partition of that number.
func (t *KafkaTopic) HasPartition(partition int32) bool {
	return partition >= 0 && partition < t.Partitions()
}

// partitioned reports whether the topic can get more partitions.
func (t *KafkaTopic) partitioned() bool { return t.topic.partitions > 0 }

// Read calls visit for the stored batches and messages from an offset on, until visit returns
// false, and returns the first and next offset of the partition.
func (t *KafkaTopic) Read(ctx context.Context, partition int32, from uint64,
	visit func(*engine.StoredValue) (bool, error),
) (engine.Extent, error) {
	visitFrom := visit
	if visit != nil {
		visitFrom = func(s *engine.StoredValue) (bool, error) {
			from = s.First + uint64(max(s.Run.Count, 1)) // a repeated call continues here
			return visit(s)
		}
	}
	return onTopic(ctx, t.log.topics, t.topic.id, func() (engine.Extent, error) {
		return t.log.engine.ReadBatches(ctx, t.topic.id, partition, from, visitFrom)
	})
}

// Extents returns the first and next offset of each partition.
func (t *KafkaTopic) Extents(ctx context.Context) ([]engine.Extent, error) {
	stats, err := t.log.topics.describe(ctx, t.topic)
	if err != nil {
		return nil, err
	}
	extents := make([]engine.Extent, len(stats.Partitions))
	for i := range stats.Partitions {
		extents[i] = engine.Extent{First: stats.Partitions[i].First, Next: stats.Partitions[i].Next}
	}
	return extents, nil
}

// PositionAt returns a position in a partition as WaitForAppend expects it.
func (t *KafkaTopic) PositionAt(partition int32, offset uint64) engine.PartitionPosition {
	return engine.PartitionPosition{Topic: t.topic.id, Partition: partition, Entry: offset}
}

// Find returns the first message with a timestamp of at least millis.
func (t *KafkaTopic) Find(ctx context.Context, partition int32, millis int64) (engine.FindResult, error) {
	return onTopic(ctx, t.log.topics, t.topic.id, func() (engine.FindResult, error) {
		return t.log.engine.FindByTime(ctx, t.topic.id, partition, millis)
	})
}

// FindNewest returns the message with the largest timestamp.
func (t *KafkaTopic) FindNewest(ctx context.Context, partition int32) (engine.FindResult, error) {
	return onTopic(ctx, t.log.topics, t.topic.id, func() (engine.FindResult, error) {
		return t.log.engine.FindNewest(ctx, t.topic.id, partition)
	})
}

// CountDelivered adds messages to the topic's delivery meter.
func (t *KafkaTopic) CountDelivered(messages, bytes int) { t.live.out.addMany(messages, bytes) }
