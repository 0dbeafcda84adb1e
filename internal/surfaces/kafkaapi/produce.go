package kafkaapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
)

// zstdFrom is the first version of Produce that allows zstd.
const zstdFrom = 7

// placed is a batch of a Produce request in progress.
type placed struct {
	topic *messaging.StreamTopic // nil when the lookup failed
	batch *messaging.PlacedBatch
	err   error
}

// takeProduce appends all batches of a request in the order of arrival; the response waits until
// they are durable. So consecutive requests of a connection share a sync of the disk.
func takeProduce(ctx context.Context, c *call) answer {
	request, _ := c.request.(*kmsg.ProduceRequest)
	response, _ := request.ResponseKind().(*kmsg.ProduceResponse)
	limit := within(len(request.Topics),
		partitionsIn(request.Topics, func(t *kmsg.ProduceRequestTopic) int { return len(t.Partitions) }))
	var waiting []placed
	for i := range request.Topics {
		asked := &request.Topics[i]
		var topic *messaging.StreamTopic
		err := limit
		if err == nil {
			topic, err = c.produceTopic(ctx, request, asked)
		}
		row := kmsg.NewProduceResponseTopic()
		row.Topic, row.TopicID = asked.Topic, asked.TopicID
		for j := range asked.Partitions {
			p := placed{topic: topic, err: err}
			if err == nil && c.version < zstdFrom && isZstd(asked.Partitions[j].Records) {
				p.err = fmt.Errorf("%w: zstd requires Produce version %d", records.ErrCodec, zstdFrom)
			}
			if p.err == nil {
				p.batch, p.err = topic.Append(ctx, asked.Partitions[j].Partition, asked.Partitions[j].Records)
			}
			waiting = append(waiting, p)
			part := kmsg.NewProduceResponseTopicPartition()
			part.Partition = asked.Partitions[j].Partition
			row.Partitions = append(row.Partitions, part)
		}
		response.Topics = append(response.Topics, row)
	}
	return now(func(ctx context.Context) (encodable, error) {
		failed := c.produced(ctx, request, response, waiting)
		if request.Acks == 0 {
			if failed != nil {
				return nil, fmt.Errorf("rejecting a batch of a producer with acks=0: %w", failed)
			}
			return nil, errSilent
		}
		return response, nil
	})
}

func isZstd(batch []byte) bool {
	head, err := records.ReadHead(batch)
	return err == nil && head.Codec() == records.Zstd
}

// produceTopic looks up the topic of batches, if the request as a whole is valid.
func (c *call) produceTopic(ctx context.Context, request *kmsg.ProduceRequest,
	asked *kmsg.ProduceRequestTopic,
) (*messaging.StreamTopic, error) {
	if request.Acks < -1 || request.Acks > 1 {
		return nil, errAcks
	}
	if request.TransactionID != nil {
		return nil, messaging.ErrTransaction
	}
	return c.topicBy(ctx, asked.Topic, asked.TopicID, permitProduce)
}

var errAcks = errors.New("acks must be -1, 0 or 1")

// produced waits for the batches and fills the response. It returns the first failure.
func (c *call) produced(ctx context.Context, request *kmsg.ProduceRequest, response *kmsg.ProduceResponse,
	waiting []placed,
) (failed error) {
	timeout := time.Duration(request.TimeoutMillis) * time.Millisecond
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	next := 0
	for i := range response.Topics {
		for j := range response.Topics[i].Partitions {
			part, p := &response.Topics[i].Partitions[j], waiting[next]
			next++
			if p.err == nil {
				p.err = p.batch.Wait(ctx)
			}
			if p.err == nil {
				part.BaseOffset = int64(p.batch.First) //nolint:gosec // offsets are far below 2^63
				part.LogAppendTime, part.LogStartOffset = p.batch.AppendTime, 0
				continue
			}
			if failed == nil {
				failed = p.err
			}
			c.refuseBatch(part, p.err)
			c.hintProducer(response, part, p)
		}
	}
	return failed
}

// refuseBatch fills the response for a rejected batch.
func (c *call) refuseBatch(part *kmsg.ProduceResponseTopicPartition, err error) {
	part.BaseOffset, part.LogAppendTime, part.LogStartOffset = -1, -1, -1
	switch {
	case errors.Is(err, errAcks):
		part.ErrorCode, part.ErrorMessage = codeInvalidAcks, text(err.Error())
		return
	case errors.Is(err, context.DeadlineExceeded):
		part.ErrorCode, part.ErrorMessage = codeTimedOut,
			text("batch was not durable within the timeout; it may or may not be stored")
		return
	}
	part.ErrorCode, part.ErrorMessage = c.fail(err)
	var refused *messaging.BatchError
	if errors.As(err, &refused) {
		for _, r := range refused.Records {
			part.ErrorRecords = append(part.ErrorRecords, errorRecord(r))
		}
	}
}

func errorRecord(r records.RecordError) kmsg.ProduceResponseTopicPartitionErrorRecord {
	row := kmsg.NewProduceResponseTopicPartitionErrorRecord()
	row.RelativeOffset, row.ErrorMessage = r.Index, text(r.Err.Error())
	return row
}

func initProducerID(ctx context.Context, c *call, request *kmsg.InitProducerIDRequest,
	response *kmsg.InitProducerIDResponse,
) error {
	response.ProducerID, response.ProducerEpoch = -1, -1
	if request.TransactionalID != nil {
		response.ErrorCode = codeTransactionDenied
		return nil
	}
	if err := c.mayCluster(permitProduce); err != nil {
		response.ErrorCode = c.codeOf(err)
		return nil
	}
	id, err := c.session.cluster.Groups.ProducerID(ctx)
	if err != nil {
		response.ErrorCode = c.codeOf(err)
		return nil
	}
	response.ProducerID, response.ProducerEpoch = id, 0
	return nil
}
