package messaging

import (
	"context"
	"errors"
	"fmt"

	"freshet/internal/base/errs"
	"freshet/internal/base/unpacking"
	"freshet/internal/base/workpool"
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
	appended, err := t.append(ctx, partition, batch, from)
	if err != nil {
		t.live.failed.add(0) // the number of messages in a rejected batch is not known
	}
	return appended, err
}

func (t *KafkaTopic) append(ctx context.Context, partition int32, batch []byte, from Sender) (*AppendedBatch, error) {
	head, err := t.checkBatch(ctx, batch, from.Contracts)
	if err != nil {
		if errors.Is(err, ErrContract) {
			if earlier := t.repeated(ctx, partition, &head, from); earlier != nil {
				return earlier, nil
			}
		}
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

// repeated returns the batch that an idempotent producer sent before and sends again, or nil. A batch that is
// stored was accepted by the contract that the topic had then.
func (t *KafkaTopic) repeated(ctx context.Context, partition int32, head *records.BatchHeader, from Sender,
) *AppendedBatch {
	if head.ProducerID == records.NoProducer {
		return nil
	}
	owner, err := from.checkID(ctx, head)
	if err != nil {
		return nil
	}
	table, err := t.producerTable(ctx, partition, from.IDs)
	if err != nil {
		return nil
	}
	earlier := table.repeated(head, producer{owner, from.Account})
	if earlier == nil {
		return nil
	}
	return &AppendedBatch{First: earlier.offset, AppendTime: earlier.appendTime, ticket: earlier.ticket}
}

// checkBatch validates a batch against the topic's rules. It returns the header also with ErrContract.
func (t *KafkaTopic) checkBatch(ctx context.Context, batch []byte, use *ContractUse) (records.BatchHeader, error) {
	limit := defaultBatchBytes
	if n := t.rules.kafka.batchBytes; n > 0 {
		limit = n
	}
	if len(batch) > limit {
		return records.BatchHeader{},
			errs.Newf(errs.TooLarge, "%w: batch has %d bytes, the topic's limit is %d", ErrTooLarge,
				len(batch), limit)
	}
	head, err := t.readBatch(ctx, batch)
	if err != nil {
		return records.BatchHeader{}, err
	}
	if head.Transactional() {
		return records.BatchHeader{}, ErrTransaction
	}
	contract, err := t.log.admission.contractOf(ctx, t.topic, t.rules, use)
	if err != nil {
		return records.BatchHeader{}, err
	}
	check := recordCheck{t: t, contract: contract, most: contract.mostBreaches()}
	check.from, check.to, check.bounded = t.rules.kafka.times(now())
	check.bounded = check.bounded && (head.MaxTime > check.to || check.from > 0)
	if !check.bounded && contract == nil && !t.checksRecords() {
		return head, nil
	}
	walk := func() error { return t.walkBatch(ctx, batch, check.record(ctx)) }
	if contract == nil || len(batch) <= workpool.SmallBytes && !compressed(batch) {
		err = walk()
	} else {
		err = t.log.admission.pool.Job(ctx).Do(workpool.Payloads, walk)
	}
	switch {
	case err != nil:
		return records.BatchHeader{}, err
	case len(check.refused.Records) > 0:
		return head, &check.refused
	}
	return head, nil
}

// recordCheck checks the records of a batch one after another.
type recordCheck struct {
	t        *KafkaTopic
	contract *contractChecker
	from, to int64 // timestamps, if bounded
	bounded  bool
	most     int // breaches that are listed
	breaches int
	refused  BatchError
}

// record returns a function that checks a record and lists it when it is rejected. It is called again for all
// records when walkBatch begins again.
func (c *recordCheck) record(ctx context.Context) func(i int32, r *records.Record) error {
	return func(i int32, r *records.Record) error {
		if i == 0 {
			c.refused.Records, c.breaches = c.refused.Records[:0], 0
			c.contract.restart()
		}
		err := c.check(ctx, r)
		if err == nil {
			return nil
		}
		if errs.KindOf(err) != errs.Invalid {
			return err
		}
		if errors.Is(err, ErrContract) {
			c.breaches++
		}
		if len(c.refused.Records) < maxRejectedRecords {
			c.refused.Records = append(c.refused.Records, records.RecordError{Index: i, Err: err})
		}
		return nil
	}
}

func (c *recordCheck) check(ctx context.Context, r *records.Record) error {
	if err := c.t.checkRecord(ctx, r); err != nil {
		return err
	}
	if c.bounded && r.Time >= 0 && (r.Time < c.from || r.Time > c.to) {
		return errs.Newf(errs.Invalid, "%w: %d is not between %d and %d, see message.timestamp.before.max.ms and "+
			"message.timestamp.after.max.ms", records.ErrTimestamp, r.Time, c.from, c.to)
	}
	if c.breaches == c.most {
		return nil // the batch is rejected in any case
	}
	return c.contract.checkRecord(r, c.t.rules.kafka.appendTime)
}

// unpackBytes is the memory that is reserved at first to decompress a batch. It suffices for most.
const unpackBytes = 640 << 10

// readBatch validates a batch. A compressed batch waits for memory to be decompressed.
func (t *KafkaTopic) readBatch(ctx context.Context, batch []byte) (head records.BatchHeader, err error) {
	limits := records.Limits{MaxRecord: t.rules.messageBytes}
	if !compressed(batch) {
		head, err = records.Check(batch, limits)
		return head, batchError(err)
	}
	t.log.unpacking.CountOpened()
	err = t.log.unpacking.Do(ctx, unpackBytes, func(r *unpacking.Reservation) error {
		limits.Grow = r.Grow
		var err error
		head, err = records.Check(batch, limits)
		return err
	})
	return head, batchError(err)
}

// walkBatch calls each for every record of a valid batch. It may call each more than once for a
// record, if the memory to decompress the batch is short.
func (t *KafkaTopic) walkBatch(ctx context.Context, batch []byte, each func(i int32, r *records.Record) error) error {
	if !compressed(batch) {
		return records.Walk(batch, nil, each)
	}
	t.log.unpacking.CountOpened()
	return t.log.unpacking.Do(ctx, unpackBytes, func(r *unpacking.Reservation) error {
		return records.Walk(batch, r.Grow, each)
	})
}

func compressed(batch []byte) bool {
	head, err := records.ReadBatchHeader(batch)
	return err == nil && head.Codec() != records.None
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

// Open implements engine.Splitter.
func (Splitter) Open(format engine.BatchFormat, body []byte) (engine.BatchReader, error) {
	if format != engine.KafkaRecordBatch {
		return nil, fmt.Errorf("batch of format %d: %w", format, engine.ErrNewerFormat)
	}
	reader, err := records.NewReader(body)
	if err != nil {
		return nil, err
	}
	return batchReader{reader}, nil
}

// batchReader implements engine.BatchReader for a Kafka batch.
type batchReader struct{ *records.Reader }

// Next implements engine.BatchReader.
func (b batchReader) Next(from int32, grow func(total int64) error) (int32, *engine.Message, error) {
	for {
		_, r, err := b.Reader.Next(grow)
		if err != nil {
			return 0, nil, err
		}
		if r.Delta >= from {
			return r.Delta, message(b.Head(), r), nil
		}
	}
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
