package kafkaapi

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
)

// maxProducers bounds the producers in one response.
const maxProducers = 100_000

// describeProducers lists the idempotent producers of partitions.
func describeProducers(ctx context.Context, c *call, request *kmsg.DescribeProducersRequest,
	response *kmsg.DescribeProducersResponse,
) error {
	limit := checkTopics(request.Topics, func(t *kmsg.DescribeProducersRequestTopic) int { return len(t.Partitions) })
	left := maxProducers
	for i := range request.Topics {
		requested := &request.Topics[i]
		row := kmsg.NewDescribeProducersResponseTopic()
		row.Topic = requested.Topic
		topic, err := c.requestedTopic(ctx, limit, requested.Topic, noTopicID, permitConsume)
		for _, index := range requested.Partitions {
			part := kmsg.NewDescribeProducersResponseTopicPartition()
			part.Partition = index
			var active []messaging.ActiveProducer
			failure := err
			if failure == nil {
				active, failure = topic.Producers(ctx, index, c.coordinator())
			}
			if left -= len(active); left < 0 {
				active, failure = nil,
					fmt.Errorf("%w: response would have more than %d producers; request fewer partitions",
						errInvalid, maxProducers)
			}
			part.ErrorCode, part.ErrorMessage = c.errorResponse(failure)
			for _, p := range active {
				producer := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
				producer.ProducerID, producer.ProducerEpoch = p.ID, int32(p.Epoch)
				producer.LastSequence, producer.LastTimestamp = p.LastSequence, p.LastTime
				producer.CoordinatorEpoch, producer.CurrentTxnStartOffset = -1, -1
				part.ActiveProducers = append(part.ActiveProducers, producer)
			}
			row.Partitions = append(row.Partitions, part)
		}
		response.Topics = append(response.Topics, row)
	}
	return nil
}
