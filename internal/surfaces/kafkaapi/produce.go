package kafkaapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/base/unpacking"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/internal/identity/access"
)

// minZstdVersion is the first version of Produce that allows zstd.
const minZstdVersion = 7

// pendingBatch is a batch of a Produce request in progress.
type pendingBatch struct {
	topic *messaging.KafkaTopic // nil when the lookup failed
	batch *messaging.AppendedBatch
	err   error
}

// beginProduce appends all batches of a request in the order of arrival; the response waits until
// they are durable. So consecutive requests of a connection share a sync of the disk.
func beginProduce(ctx context.Context, c *call) pendingResponse {
	request, _ := c.request.(*kmsg.ProduceRequest)
	response, _ := request.ResponseKind().(*kmsg.ProduceResponse)
	invalid := checkTopics(request.Topics, func(t *kmsg.ProduceRequestTopic) int { return len(t.Partitions) })
	if invalid == nil {
		invalid = checkProduce(request)
	}
	ctx = c.workContext(ctx)
	sender := messaging.Sender{
		Account: access.PrincipalID(c.session.principal), IDs: c.coordinator(), Contracts: &messaging.ContractUse{},
	}
	var waiting []pendingBatch
	var busy error // the memory to decompress a batch did not become free: the next ones do not wait for it again
	for i := range request.Topics {
		requested := &request.Topics[i]
		topic, err := c.requestedTopic(ctx, invalid, requested.Topic, requested.TopicID, permitProduce)
		row := kmsg.NewProduceResponseTopic()
		row.Topic, row.TopicID = requested.Topic, requested.TopicID
		for j := range requested.Partitions {
			p := pendingBatch{topic: topic, err: err}
			if err == nil && c.version < minZstdVersion && isZstd(requested.Partitions[j].Records) {
				p.err = fmt.Errorf("%w: zstd requires Produce version %d", records.ErrCodec, minZstdVersion)
			}
			if p.err == nil {
				p.err = busy
			}
			if p.err == nil {
				p.batch, p.err = topic.Append(ctx, requested.Partitions[j].Partition, requested.Partitions[j].Records,
					sender)
			}
			if errors.Is(p.err, unpacking.ErrBusy) {
				busy = p.err
			}
			waiting = append(waiting, p)
			part := kmsg.NewProduceResponseTopicPartition()
			part.Partition = requested.Partitions[j].Partition
			row.Partitions = append(row.Partitions, part)
		}
		response.Topics = append(response.Topics, row)
	}
	return whenDue(func(ctx context.Context) (encodable, error) {
		failed := c.awaitBatches(ctx, request, response, waiting)
		if request.Acks == 0 {
			if failed != nil {
				return nil, fmt.Errorf("rejecting a batch of a producer with acks=0: %w", failed)
			}
			return nil, errNoResponse
		}
		return response, nil
	})
}

func isZstd(batch []byte) bool {
	head, err := records.ReadBatchHeader(batch)
	return err == nil && head.Codec() == records.Zstd
}

// checkProduce validates the fields of a request that concern all batches.
func checkProduce(request *kmsg.ProduceRequest) error {
	if request.Acks < -1 || request.Acks > 1 {
		return errAcks
	}
	if request.TransactionID != nil {
		return messaging.ErrTransaction
	}
	return nil
}

var errAcks = errors.New("acks must be -1, 0 or 1")

// awaitBatches waits for the batches and fills the response. It returns the first failure.
func (c *call) awaitBatches(ctx context.Context, request *kmsg.ProduceRequest, response *kmsg.ProduceResponse,
	waiting []pendingBatch,
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
			c.rejectBatch(part, p.err)
			c.addProduceLeaderHint(response, part, p)
		}
	}
	return failed
}

// rejectBatch fills the response for a rejected batch.
func (c *call) rejectBatch(part *kmsg.ProduceResponseTopicPartition, err error) {
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
	part.ErrorCode, part.ErrorMessage = c.errorResponse(err)
	var refused *messaging.BatchError
	if errors.As(err, &refused) {
		if detail := breachText(refused.Records[0].Err); detail != "" {
			part.ErrorMessage = text(fmt.Sprintf("record %d: %s", refused.Records[0].Index, detail))
		}
		for _, r := range refused.Records {
			part.ErrorRecords = append(part.ErrorRecords, errorRecord(r))
		}
	}
}

func errorRecord(r records.RecordError) kmsg.ProduceResponseTopicPartitionErrorRecord {
	row := kmsg.NewProduceResponseTopicPartitionErrorRecord()
	row.RelativeOffset, row.ErrorMessage = r.Index, text(r.Err.Error())
	if detail := breachText(r.Err); detail != "" {
		row.ErrorMessage = text(detail)
	}
	return row
}

// breachText returns the error of a record that breaks the contract of its topic, with values of the record, for the
// producer; "" for another error.
func breachText(err error) string {
	var breach *messaging.ContractError
	if errors.As(err, &breach) {
		return breach.Detail()
	}
	return ""
}

// noProducerEpoch is the epoch of a request without a producer id.
const noProducerEpoch = -1

func initProducerID(ctx context.Context, c *call, request *kmsg.InitProducerIDRequest,
	response *kmsg.InitProducerIDResponse,
) error {
	response.ProducerID, response.ProducerEpoch = -1, -1
	// An id and its epoch only matter for transactions, but one of them alone is an error.
	if deref(request.TransactionalID) == "" && request.TransactionalID != nil ||
		(request.ProducerID == records.NoProducer) != (request.ProducerEpoch == noProducerEpoch) {
		response.ErrorCode = codeInvalidRequest
		return nil
	}
	if request.TransactionalID != nil {
		response.ErrorCode = c.transactionCode()
		return nil
	}
	if err := c.authorizeCluster(permitProduce); err != nil {
		response.ErrorCode = c.codeOf(err)
		return nil
	}
	id, err := c.session.cluster.Groups.ProducerID(ctx, access.PrincipalID(c.session.principal))
	if err != nil {
		response.ErrorCode = c.codeOf(err)
		return nil
	}
	response.ProducerID, response.ProducerEpoch = id, 0
	return nil
}
