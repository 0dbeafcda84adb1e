package messaging

import (
	"context"
	"errors"
	"fmt"

	"freshet/internal/base/errs"
	"freshet/internal/broker/records"
	"freshet/internal/storage/engine"
)

// AppendedBatch is a batch that the engine has appended to a partition and that may not be durable
// yet.
type AppendedBatch struct {
	First uint64 // offset of its first record
	// AppendTime is the timestamp of all its records. It is -1 when the records keep their own
	// timestamps, and for a duplicate whose append time is no longer in memory.
	AppendTime int64
	ticket     engine.PendingAppend
}

// Wait returns nil once the batch is durable and visible to readers.
func (p *AppendedBatch) Wait(ctx context.Context) error {
	if p.ticket == nil {
		return nil // duplicate of a durable batch
	}
	return p.ticket.Wait(ctx)
}

// BatchError lists the records of a batch that were rejected.
type BatchError struct {
	Records []records.RecordError
}

// Error returns the reason for the first rejected record.
func (e *BatchError) Error() string { return e.Records[0].Error() }

// Unwrap returns the reason for the first rejected record.
func (e *BatchError) Unwrap() error { return e.Records[0].Err }

// maxRejectedRecords bounds the rejected records that a BatchError lists.
const maxRejectedRecords = 100

// Append validates a record batch and appends it to a partition. It may change
// timestamps in batch, so the caller must not use batch afterwards.
func (t *KafkaTopic) Append(ctx context.Context, partition int32, batch []byte, from Sender) (*AppendedBatch, error) {
	head, err := t.checkBatch(ctx, batch)
	if err != nil {
		return nil, err
	}
	appended := &AppendedBatch{AppendTime: -1}
	if t.rules.kafka.appendTime {
		appended.AppendTime = now()
		records.StampAppendTime(batch, appended.AppendTime)
		head.MaxTime = appended.AppendTime
	}
	run := engine.MessageBatch{Format: engine.KafkaRecordBatch, Count: head.Count, MaxTime: head.MaxTime, Body: batch}
	size := int64(len(batch))
	if err := t.log.quota.ReserveBytes(size); err != nil {
		return nil, err
	}
	defer t.log.quota.ReleaseBytes(size) // from here on the engine counts the bytes
	appendBatch := func(attributes []engine.AttributeWrite) (engine.PendingAppend, error) {
		return onTopic(ctx, t.log.topics, t.topic.id, func() (engine.PendingAppend, error) {
			return t.log.engine.AppendBatch(ctx, t.topic.id, partition, run, attributes)
		})
	}
	if head.ProducerID == records.NoProducer {
		if appended.ticket, err = appendBatch(nil); err != nil {
			return nil, err
		}
		appended.First = appended.ticket.First()
	} else {
		owner, err := from.checkID(ctx, &head)
		if err != nil {
			return nil, err
		}
		table, err := t.producerTable(ctx, partition, from.IDs)
		if err != nil {
			return nil, err
		}
		duplicate, err := table.append(&head, appended, producer{owner, from.Account}, &t.live.disowned, appendBatch)
		if err != nil || duplicate {
			return appended, err
		}
	}
	t.live.in.addMany(int(head.Count), len(batch))
	return appended, nil
}

// checkBatch validates a batch against the topic's rules.
func (t *KafkaTopic) checkBatch(ctx context.Context, batch []byte) (records.BatchHeader, error) {
	limit := defaultBatchBytes
	if n := t.rules.kafka.batchBytes; n > 0 {
		limit = n
	}
	if len(batch) > limit {
		return records.BatchHeader{},
			errs.Newf(errs.TooLarge, "%w: batch has %d bytes, the topic's limit is %d", ErrTooLarge,
				len(batch), limit)
	}
	head, err := records.Check(batch, records.Limits{MaxRecord: t.rules.messageBytes})
	if err != nil {
		return records.BatchHeader{}, batchError(err)
	}
	if head.Transactional() {
		return records.BatchHeader{}, ErrTransaction
	}
	from, to, bounded := t.rules.kafka.times(now())
	bounded = bounded && (head.MaxTime > to || from > 0)
	if !bounded && !t.checksRecords() {
		return head, nil
	}
	var refused BatchError
	err = records.Walk(batch, func(i int32, r *records.Record) error {
		err := t.checkRecord(ctx, r)
		if err == nil && bounded && r.Time >= 0 && (r.Time < from || r.Time > to) {
			err = errs.Newf(errs.Invalid, "%w: %d is not between %d and %d, see message.timestamp.before.max.ms and "+
				"message.timestamp.after.max.ms", records.ErrTimestamp, r.Time, from, to)
		}
		if err != nil {
			if errs.KindOf(err) != errs.Invalid {
				return err
			}
			if len(refused.Records) < maxRejectedRecords {
				refused.Records = append(refused.Records, records.RecordError{Index: i, Err: err})
			}
		}
		return nil
	})
	if err != nil {
		return records.BatchHeader{}, err
	}
	if len(refused.Records) > 0 {
		return records.BatchHeader{}, &refused
	}
	return head, nil
}

// batchError converts an invalid record into a BatchError, which lists it for the client.
func batchError(err error) error {
	var one *records.RecordError
	if errors.As(err, &one) && errors.Is(err, records.ErrInvalid) {
		return &BatchError{Records: []records.RecordError{*one}}
	}
	return err
}

// checksRecords reports whether the topic has rules that need every single record.
func (t *KafkaTopic) checksRecords() bool {
	_, typed := t.topic.schemas.latest()
	return t.topic.prefixedKey || t.topic.prefixedValue || t.rules.kafka.keyed ||
		t.rules.validation != notValidated && typed
}

var errNoKey = errs.Newf(errs.Invalid, "%w: topic is compacted, so every message needs a key", ErrMessage)

// checkRecord validates a record against the topic's rules.
func (t *KafkaTopic) checkRecord(ctx context.Context, r *records.Record) error {
	if t.rules.kafka.keyed && r.Key == nil {
		return errNoKey
	}
	if (t.topic.prefixedKey || t.topic.prefixedValue) && t.log.admission.registry == nil {
		return ErrNoRegistry
	}
	if t.topic.prefixedKey && r.Key != nil {
		if err := t.log.admission.checkPrefix(ctx, t.topic, "key", r.Key); err != nil {
			return err
		}
	}
	if t.topic.prefixedValue && r.Value != nil {
		if err := t.log.admission.checkPrefix(ctx, t.topic, "value", r.Value); err != nil {
			return err
		}
	}
	if v, ok := t.topic.schemas.latest(); ok && t.rules.validation != notValidated && r.Value != nil {
		return t.log.admission.checkPayload(ctx, t.topic.id, v, t.rules.validation,
			&Message{Payload: r.Value, Key: string(r.Key), BinaryKey: true, SchemaVersion: v.Version})
	}
	return nil
}

// Splitter decodes Kafka batches into messages for the engine.
type Splitter struct{}

// Split implements engine.Splitter.
func (Splitter) Split(format engine.BatchFormat, body []byte, each func(i int32, m *engine.Message) error) error {
	if format != engine.KafkaRecordBatch {
		return fmt.Errorf("batch of format %d: %w", format, engine.ErrNewerFormat)
	}
	head, err := records.ReadBatchHeader(body)
	if err != nil {
		return err
	}
	return records.Walk(body, func(_ int32, r *records.Record) error {
		return each(r.Delta, message(&head, r))
	})
}

// message converts a record to the engine's form. It copies the record's bytes, because they may
// lie in a decompression buffer that is reused.
func message(head *records.BatchHeader, r *records.Record) *engine.Message {
	m := &engine.Message{
		Payload: append([]byte(nil), r.Value...), NullPayload: r.Value == nil,
		Key: string(r.Key), EmptyKey: r.Key != nil && len(r.Key) == 0,
		SchemaVersion: engine.NoSchema,
	}
	if r.Time > 0 {
		m.EventTime = r.Time
	}
	if head.ProducerID != records.NoProducer {
		m.Sequence, m.HasSequence = uint64(uint32(head.Sequence+r.Delta)&0x7fffffff), true
	}
	for i := range r.Headers {
		h := &r.Headers[i]
		m.Properties = append(m.Properties,
			engine.Property{Key: string(h.Key), Value: string(h.Value), Null: h.Value == nil})
	}
	return m
}
