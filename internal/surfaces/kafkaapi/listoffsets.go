package kafkaapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/unpacking"
	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// Timestamps with a special meaning.
const (
	timeEnd        = -1
	timeStart      = -2
	timeNewest     = -3
	timeLocalStart = -4
	timeTiered     = -5
)

// timestampSince is the first version with a timestamp that has a special meaning.
var timestampSince = map[int64]int16{timeEnd: 1, timeStart: 1, timeNewest: 7, timeLocalStart: 8, timeTiered: 9}

var errTimestampVersion = errors.New("timestamp has no meaning in this version of ListOffsets")

func listOffsets(ctx context.Context, c *call, request *kmsg.ListOffsetsRequest,
	response *kmsg.ListOffsetsResponse,
) error {
	limit := checkTopics(request.Topics, func(t *kmsg.ListOffsetsRequestTopic) int { return len(t.Partitions) })
	seen := countPartitions(request.Topics)
	ctx = c.workContext(ctx)
	var busy error // the memory to search a batch did not become free: the next ones do not wait for it again
	for i := range request.Topics {
		requested := &request.Topics[i]
		topic, err := c.requestedTopic(ctx, limit, requested.Topic, noTopicID, describePermissions...)
		row := kmsg.NewListOffsetsResponseTopic()
		row.Topic = requested.Topic
		for j := range requested.Partitions {
			key := partitionKey{topicKey{topic: requested.Topic}, requested.Partitions[j].Partition}
			if !seen.isFirst(key) {
				continue
			}
			part := kmsg.NewListOffsetsResponseTopicPartition()
			part.Partition, part.Timestamp, part.Offset, part.LeaderEpoch = requested.Partitions[j].Partition, -1, -1,
				-1
			failure := err
			if failure == nil {
				failure = seen.checkOnce(key, fmt.Sprintf("partition %d", part.Partition))
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if failure == nil {
				failure = busy
			}
			if failure == nil {
				failure = c.offsetAt(ctx, topic, &requested.Partitions[j], &part)
			}
			if errors.Is(failure, unpacking.ErrBusy) {
				busy = failure
			}
			part.ErrorCode = c.fetchCode(failure)
			row.Partitions = append(row.Partitions, part)
		}
		response.Topics = append(response.Topics, row)
	}
	return nil
}

// countPartitions counts how often a request contains each partition.
func countPartitions(topics []kmsg.ListOffsetsRequestTopic) occurrences[partitionKey] {
	var all []partitionKey
	for i := range topics {
		for j := range topics[i].Partitions {
			all = append(all, partitionKey{topicKey{topic: topics[i].Topic}, topics[i].Partitions[j].Partition})
		}
	}
	return countOccurrences(all, func(key *partitionKey) partitionKey { return *key })
}

func (c *call) offsetAt(ctx context.Context, topic *messaging.KafkaTopic,
	requested *kmsg.ListOffsetsRequestTopicPartition,
	part *kmsg.ListOffsetsResponseTopicPartition,
) error {
	if since, special := timestampSince[requested.Timestamp]; requested.Timestamp < 0 &&
		(!special || c.version < since) {
		return fmt.Errorf("%w: %d", errTimestampVersion, requested.Timestamp)
	}
	if err := c.checkLeader(topic, requested.CurrentLeaderEpoch); err != nil {
		return err
	}
	if !topic.HasPartition(requested.Partition) {
		return engine.ErrNoPartition
	}
	switch requested.Timestamp {
	case timeEnd, timeStart, timeLocalStart:
		extent, err := topic.Read(ctx, requested.Partition, 0, nil)
		if err != nil {
			return err
		}
		part.Offset, part.LeaderEpoch = int64(extent.First), 0 //nolint:gosec // offsets are far below 2^63
		if requested.Timestamp == timeEnd {
			part.Offset = int64(extent.Next) //nolint:gosec // offsets are far below 2^63
		}
		return nil
	case timeTiered:
		return nil // tiered storage does not exist
	}
	var found engine.FindResult
	var err error
	if requested.Timestamp == timeNewest {
		found, err = topic.FindNewest(ctx, requested.Partition)
	} else {
		found, err = topic.Find(ctx, requested.Partition, requested.Timestamp)
	}
	if err != nil || !found.OK {
		return err
	}
	part.Offset = int64(found.Entry) //nolint:gosec // offsets are far below 2^63
	part.Timestamp, part.LeaderEpoch = found.Time, 0
	return nil
}

// offsetForLeaderEpoch returns the end of the partition for every known epoch. Readers only see
// durable records, so a client never has to discard records of an earlier leader.
func offsetForLeaderEpoch(ctx context.Context, c *call, request *kmsg.OffsetForLeaderEpochRequest,
	response *kmsg.OffsetForLeaderEpochResponse,
) error {
	limit := checkTopics(request.Topics,
		func(t *kmsg.OffsetForLeaderEpochRequestTopic) int { return len(t.Partitions) })
	for i := range request.Topics {
		requested := &request.Topics[i]
		topic, err := c.requestedTopic(ctx, limit, requested.Topic, noTopicID, describePermissions...)
		row := kmsg.NewOffsetForLeaderEpochResponseTopic()
		row.Topic = requested.Topic
		for j := range requested.Partitions {
			part := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			part.Partition, part.LeaderEpoch, part.EndOffset = requested.Partitions[j].Partition, -1, -1
			failure := err
			if failure == nil && !topic.HasPartition(part.Partition) {
				failure = engine.ErrNoPartition
			}
			if failure == nil {
				failure = c.checkLeader(topic, requested.Partitions[j].CurrentLeaderEpoch)
			}
			epoch := int32(0)
			if failure == nil {
				_, epoch = c.leader(topic)
			}
			if known := requested.Partitions[j].LeaderEpoch; failure == nil && known >= 0 && known <= epoch {
				var extent engine.Extent
				if extent, failure = topic.Read(ctx, part.Partition, 0, nil); failure == nil {
					part.LeaderEpoch, part.EndOffset = known, int64(extent.Next) //nolint:gosec // far below 2^63
				}
			}
			part.ErrorCode = c.fetchCode(failure)
			row.Partitions = append(row.Partitions, part)
		}
		response.Topics = append(response.Topics, row)
	}
	return nil
}
