package kafkaapi

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/storage/engine"
)

// errCompacted means that deleting records would remove records that compaction keeps.
var errCompacted = errors.New(
	"topic is compacted, so records cannot be deleted by offset; add delete to its cleanup.policy first")

// maxDeleteTimeout bounds the timeout of one request.
const maxDeleteTimeout = time.Minute

// offsetEnd is the offset that means the end of a partition.
const offsetEnd = -1

// deleteRecords moves the log start of partitions forward.
func deleteRecords(ctx context.Context, c *call, request *kmsg.DeleteRecordsRequest,
	response *kmsg.DeleteRecordsResponse,
) error {
	limit := checkTopics(request.Topics, func(t *kmsg.DeleteRecordsRequestTopic) int { return len(t.Partitions) })
	timeout := time.Duration(request.TimeoutMillis) * time.Millisecond
	if timeout <= 0 || timeout > maxDeleteTimeout {
		timeout = maxDeleteTimeout
	}
	deadline, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for i := range request.Topics {
		requested := &request.Topics[i]
		row := kmsg.NewDeleteRecordsResponseTopic()
		row.Topic = requested.Topic
		topic, err := c.requestedTopic(ctx, limit, requested.Topic, noTopicID, permitDelete)
		if err == nil && topic.Compacted() {
			err = errCompacted
		}
		var changed error
		for j := range requested.Partitions {
			part := kmsg.NewDeleteRecordsResponseTopicPartition()
			part.Partition, part.LowWatermark = requested.Partitions[j].Partition, -1
			failure := err
			if failure == nil {
				part.LowWatermark, failure = deleteBefore(deadline, topic, part.Partition,
					requested.Partitions[j].Offset)
				changed = errors.Join(changed, failure)
			}
			part.ErrorCode = c.deleteCode(ctx, failure)
			row.Partitions = append(row.Partitions, part)
		}
		if err == nil {
			c.auditAllowed(permitDelete, topic.Name().String(), changed)
		}
		response.Topics = append(response.Topics, row)
	}
	return ctx.Err()
}

// deleteBefore deletes a partition's records before an offset and returns the first remaining
// offset.
func deleteBefore(ctx context.Context, topic *messaging.KafkaTopic, partition int32, offset int64) (int64, error) {
	if !topic.HasPartition(partition) {
		return -1, engine.ErrNoPartition
	}
	if offset < offsetEnd {
		return -1, errOffsetOutOfRange
	}
	before := uint64(offset) //nolint:gosec // not used when negative
	if offset == offsetEnd {
		extent, err := topic.Read(ctx, partition, 0, nil)
		if err != nil {
			return -1, err
		}
		before = extent.Next
	}
	first, err := topic.Trim(ctx, partition, before)
	if err != nil {
		return -1, err
	}
	return int64(first), nil //nolint:gosec // offsets are far below 2^63
}

func (c *call) deleteCode(ctx context.Context, err error) code {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return codeTimedOut
	}
	return c.fetchCode(err)
}
