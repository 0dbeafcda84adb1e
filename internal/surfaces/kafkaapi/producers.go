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
	partitions := 0
	for i := range request.Topics {
		partitions += len(request.Topics[i].Partitions)
	}
	limit := checkRequestSize(len(request.Topics), partitions)
	left := maxProducers
	for i := range request.Topics {
		requested := &request.Topics[i]
		row := kmsg.NewDescribeProducersResponseTopic()
		row.Topic = requested.Topic
		var topic *messaging.KafkaTopic
		err := limit
		if err == nil {
			topic, err = c.topic(ctx, requested.Topic, permitConsume)
		}
		for _, index := range requested.Partitions {
			part := kmsg.NewDescribeProducersResponseTopicPartition()
			part.Partition = index
			var active []messaging.ActiveProducer
			failure := err
			if failure == nil {
				active, failure = topic.Producers(ctx, index)
			}
			if left -= len(active); left < 0 {
				active, failure = nil,
					fmt.Errorf("%w: response would have more than %d producers; request fewer partitions",
						errInvalid, maxProducers)
			}
			if failure != nil {
				part.ErrorCode, part.ErrorMessage = c.errorResponse(failure)
			}
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
