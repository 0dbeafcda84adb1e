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

// zstdFrom is the first version of Produce whose clients may use zstd.
const zstdFrom = 7

// placed is a batch of a Produce request on its way.
type placed struct {
	topic *messaging.StreamTopic // nil when it was not found
	batch *messaging.PlacedBatch
	err   error
}

// takeProduce places all batches of a request in the order of arrival; the answer
// waits for them. So the requests of a connection share a sync.
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
				p.err = fmt.Errorf("%w: zstd needs version %d of Produce", records.ErrCodec, zstdFrom)
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
				return nil, fmt.Errorf("producer that wants no answers sent a batch that was refused: %w", failed)
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

// produceTopic finds the topic of batches, if the request as a whole can be
// served.
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

// produced waits for the batches and fills the response. It returns the first
// failure.
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
				part.BaseOffset, part.LogAppendTime, part.LogStartOffset = int64(p.batch.First), p.batch.AppendTime, 0 //nolint:gosec // entries are far below
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

// refuseBatch fills the row of a batch that was not taken.
func (c *call) refuseBatch(part *kmsg.ProduceResponseTopicPartition, err error) {
	part.BaseOffset, part.LogAppendTime, part.LogStartOffset = -1, -1, -1
	switch {
	case errors.Is(err, errAcks):
		part.ErrorCode, part.ErrorMessage = codeInvalidAcks, text(err.Error())
		return
	case errors.Is(err, context.DeadlineExceeded):
		part.ErrorCode, part.ErrorMessage = codeTimedOut,
			text("batch was not durable in time; whether it is stored is not known")
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
