package messaging

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/broker/records"
	"freshet/internal/storage/engine"
)

const (
	trackedBatches    = 5              // last batches of a producer in which duplicates are recognized
	maxProducers      = 10_000         // per partition
	producerRetention = 24 * time.Hour // after the producer's last batch
)

// producerTable holds the idempotent producers of a partition (docs/spec/stream.md#idempotence). mu
// makes checking a batch and appending it one step. No caller holds mu while it waits for the disk,
// so the table may be ahead of the disk. The durable form is state of the partition in the engine
// (engine.Attribute), which is written together with each batch.
type producerTable struct {
	mu        sync.Mutex
	loaded    bool
	producers map[int64]*producerState
}

// producerState is the state of one producer. It is immutable; a new batch replaces it.
type producerState struct {
	epoch   int16
	at      int64 // time of the last batch, epoch milliseconds
	batches []trackedBatch
}

type trackedBatch struct {
	first, last int32 // sequences
	offset      uint64
	appendTime  int64                // see AppendedBatch.AppendTime; -1 when loaded from the store
	ticket      engine.PendingAppend // nil when loaded from the store
}

// producerTable returns the table of a partition. The first call loads it from the store.
func (t *KafkaTopic) producerTable(ctx context.Context, partition int32) (*producerTable, error) {
	if !t.HasPartition(partition) {
		return nil, engine.ErrNoPartition
	}
	found, ok := t.live.producers.Load(partition)
	if !ok {
		found, _ = t.live.producers.LoadOrStore(partition, &producerTable{})
	}
	table, _ := found.(*producerTable)
	table.mu.Lock()
	defer table.mu.Unlock()
	if t.live.disowned.Load() {
		return nil, engine.ErrNotOwner
	}
	if table.loaded {
		return table, nil
	}
	m := make(map[int64]*producerState)
	err := t.log.topics.withTopic(ctx, t.topic.id, func() error {
		return t.log.engine.Attributes(ctx, t.topic.id, partition, producerKeyPrefix, func(s engine.Attribute) error {
			id, state, err := decodeProducer(s)
			if err == nil {
				m[id] = state
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	table.producers, table.loaded = m, true
	return table, nil
}

// append checks a batch against the producer's earlier batches and appends it. A duplicate gets the
// offset and the append time of the original.
func (p *producerTable) append(head *records.BatchHeader, appended *AppendedBatch, left *atomic.Bool,
	appendBatch func([]engine.AttributeWrite) (engine.PendingAppend, error),
) (duplicate bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left.Load() { // another member may have accepted batches since
		return false, engine.ErrNotOwner
	}
	old := p.producers[head.ProducerID]
	last := lastSequence(head)
	if earlier, err := old.check(head, last); err != nil || earlier != nil {
		if earlier != nil {
			appended.First, appended.AppendTime, appended.ticket = earlier.offset, earlier.appendTime, earlier.ticket
		}
		return true, err
	}
	next := &producerState{epoch: head.ProducerEpoch, at: now()}
	if old != nil && old.epoch == head.ProducerEpoch {
		next.batches = slices.Clone(old.batches[max(0, len(old.batches)-trackedBatches+1):])
	}
	next.batches = append(next.batches, trackedBatch{first: head.Sequence, last: last, appendTime: appended.AppendTime})
	sent := &next.batches[len(next.batches)-1]
	evicted := p.evictLocked(next.at)
	attributes := []engine.AttributeWrite{newProducerWrite(head.ProducerID, next)}
	for _, id := range evicted {
		attributes = append(attributes, engine.AttributeWrite{Attribute: engine.Attribute{Key: producerKey(id)}})
	}
	ticket, err := appendBatch(attributes)
	if err != nil {
		return false, err
	}
	sent.offset, sent.ticket = ticket.First(), ticket
	for _, id := range evicted {
		delete(p.producers, id)
	}
	p.producers[head.ProducerID] = next
	appended.First, appended.ticket = sent.offset, ticket
	return false, nil
}

// lastSequence returns the sequence number of a batch's last record. After 2^31-1 sequence numbers
// start again at 0.
func lastSequence(head *records.BatchHeader) int32 {
	return int32(uint32(head.Sequence+head.Count-1) & 0x7fffffff)
}

// check returns the batch that this batch duplicates, or an error when it is fenced or out of
// order.
func (s *producerState) check(head *records.BatchHeader, last int32) (*trackedBatch, error) {
	if s == nil {
		return nil, nil
	}
	switch {
	case head.ProducerEpoch < s.epoch:
		return nil, errs.Newf(errs.Conflict, "%w: batch has epoch %d, the newest is %d", ErrProducerEpoch,
			head.ProducerEpoch, s.epoch)
	case head.ProducerEpoch > s.epoch:
		if head.Sequence != 0 {
			return nil, errs.Newf(errs.Conflict, "%w: first batch of epoch %d begins at %d, want 0", ErrSequence,
				head.ProducerEpoch, head.Sequence)
		}
		return nil, nil
	}
	for i := range s.batches {
		if b := &s.batches[i]; b.first == head.Sequence && b.last == last {
			return b, nil
		}
	}
	if n := len(s.batches); n > 0 {
		if want := int32(uint32(s.batches[n-1].last+1) & 0x7fffffff); head.Sequence != want {
			return nil, errs.Newf(errs.Conflict, "%w: batch begins at %d, want %d", ErrSequence, head.Sequence, want)
		}
	}
	return nil, nil
}

// evictLocked returns the producers to remove with the next batch: those without a batch for
// producerRetention, or else the oldest one when the table is full. Below the limit it scans the
// table only at every 256th producer. The caller holds p.mu.
func (p *producerTable) evictLocked(at int64) (gone []int64) {
	if len(p.producers) < maxProducers {
		if len(p.producers)%256 != 255 {
			return nil
		}
	}
	oldest, oldestAt := int64(-1), at
	for id, s := range p.producers {
		if at-s.at > producerRetention.Milliseconds() && len(gone) < 100 {
			gone = append(gone, id)
		}
		if s.at < oldestAt {
			oldest, oldestAt = id, s.at
		}
	}
	if len(gone) == 0 && len(p.producers) >= maxProducers && oldest >= 0 {
		gone = append(gone, oldest)
	}
	return gone
}

// producerKeyPrefix prefixes the key of a stored producer; the id follows in eight bytes. The value is
// epoch, time, and for each batch its first and last sequence number and its offset.
var producerKeyPrefix = []byte{'p'}

const (
	producerHeaderLen = 2 + 8
	producerBatchLen  = 4 + 4 + producerOffsetLen
	producerOffsetLen = 8 // at the end of a batch
)

func producerKey(id int64) []byte {
	return binary.BigEndian.AppendUint64(slices.Clone(producerKeyPrefix), uint64(id))
}

func encodeProducer(id int64, s *producerState) engine.Attribute {
	value := binary.BigEndian.AppendUint16(nil, uint16(s.epoch))
	value = binary.BigEndian.AppendUint64(value, uint64(s.at))
	for _, b := range s.batches {
		value = binary.BigEndian.AppendUint32(value, uint32(b.first))
		value = binary.BigEndian.AppendUint32(value, uint32(b.last))
		value = binary.BigEndian.AppendUint64(value, b.offset)
	}
	return engine.Attribute{Key: producerKey(id), Value: value}
}

// newProducerWrite returns the write of a producer whose last batch is being appended: the
// engine adds the offset of that batch, with which the value ends.
func newProducerWrite(id int64, s *producerState) engine.AttributeWrite {
	w := engine.AttributeWrite{Attribute: encodeProducer(id, s), AppendEntry: true}
	w.Value = w.Value[:len(w.Value)-producerOffsetLen]
	return w
}

func decodeProducer(side engine.Attribute) (int64, *producerState, error) {
	rest := side.Value
	if len(side.Key) != len(producerKeyPrefix)+8 || len(rest) < producerHeaderLen ||
		(len(rest)-producerHeaderLen)%producerBatchLen != 0 {
		return 0, nil, errs.Newf(errs.Unavailable, "%w: producer state has a key of %d and a value of %d bytes",
			engine.ErrCorrupt, len(side.Key), len(rest))
	}
	s := &producerState{epoch: int16(binary.BigEndian.Uint16(rest)), at: int64(binary.BigEndian.Uint64(rest[2:]))}
	for rest = rest[producerHeaderLen:]; len(rest) > 0; rest = rest[producerBatchLen:] {
		s.batches = append(s.batches, trackedBatch{
			first: int32(binary.BigEndian.Uint32(rest)), last: int32(binary.BigEndian.Uint32(rest[4:])),
			offset: binary.BigEndian.Uint64(rest[8:]), appendTime: -1,
		})
	}
	return int64(binary.BigEndian.Uint64(side.Key[len(producerKeyPrefix):])), s, nil
}
