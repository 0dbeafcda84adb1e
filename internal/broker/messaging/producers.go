package messaging

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/broker/records"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
)

const (
	trackedBatches    = 5              // last batches of a producer in which duplicates are recognized
	maxProducers      = 10_000         // per partition
	producerRetention = 24 * time.Hour // after the producer's last batch
	producerSweep     = time.Hour      // interval between searches for expired producers
)

// producerBytes is what a producer of a partition counts towards quotas: the memory that its state takes.
const producerBytes = 768

// ProducerIDs knows the ids of producers that the cluster has issued. groups.Coordinator implements it.
type ProducerIDs interface {
	// ProducerOwner reports whether an id was issued, and for which account; "" is not known.
	ProducerOwner(ctx context.Context, id int64) (account string, issued bool, err error)
	// KnownProducerOwner is ProducerOwner without waiting for other members.
	KnownProducerOwner(id int64) (account string)
}

// Sender is the sender of a batch.
type Sender struct {
	Account string
	IDs     ProducerIDs // nil accepts every id
	// Contracts is what the contracts of topics have taken for the request; nil for a request of one batch.
	Contracts *ContractUse
}

// checkID returns the account that a batch's producer id was issued for. An id that was not issued is
// rejected.
func (s *Sender) checkID(ctx context.Context, head *records.BatchHeader) (owner string, err error) {
	if s.IDs == nil {
		return "", nil
	}
	owner, issued, err := s.IDs.ProducerOwner(ctx, head.ProducerID)
	if err == nil && !issued {
		err = errs.Newf(errs.Conflict, "%w: id %d", ErrProducerID, head.ProducerID)
	}
	return owner, err
}

// producer is the producer of a batch: the account that its id was issued for, "" if that is not known, and the
// account that sends it.
type producer struct{ owner, sender string }

// producerTable holds the idempotent producers of a partition (docs/spec/stream.md#idempotence). mu
// makes checking a batch and appending it one step. No caller holds mu while it waits for the disk,
// so the table may be ahead of the disk. The durable form is state of the partition in the engine
// (engine.Attribute), which is written together with each batch.
type producerTable struct {
	mu        sync.Mutex
	loaded    bool
	producers map[int64]*producerState
	// expired are stored producers that are no longer in producers; the next batches delete them.
	expired map[int64]struct{}
	sweep   int64 // time of the next search for expired producers, epoch milliseconds
	quota   *quota.Cluster
	tenant  string
}

// producerState is the state of one producer. It is immutable; a new batch replaces it.
type producerState struct {
	epoch   int16
	at      int64  // time of the last batch, epoch milliseconds
	account string // account that pays, and that alone may use the id; "" when it is not known
	batches []trackedBatch
}

type trackedBatch struct {
	first, last int32 // sequences
	offset      uint64
	appendTime  int64                // see AppendedBatch.AppendTime; -1 when loaded from the store
	ticket      engine.PendingAppend // nil when loaded from the store
}

// producerTable returns the table of a partition. The first call loads it from the store.
func (t *KafkaTopic) producerTable(ctx context.Context, partition int32, ids ProducerIDs) (*producerTable, error) {
	if !t.HasPartition(partition) {
		return nil, engine.ErrNoPartition
	}
	found, ok := t.live.producers.Load(partition)
	if !ok {
		found, _ = t.live.producers.LoadOrStore(partition,
			&producerTable{quota: t.log.quota, tenant: t.topic.name.Namespace.Tenant})
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
	table.loadLocked(m, ids)
	t.log.live.sweepProducers(t.log.life)
	return table, nil
}

// loadLocked makes stored producers those of the table. The caller holds p.mu.
func (p *producerTable) loadLocked(stored map[int64]*producerState, ids ProducerIDs) {
	p.producers, p.expired, p.loaded = stored, make(map[int64]struct{}), true
	for id, s := range stored {
		if ids != nil {
			s.account = ids.KnownProducerOwner(id)
		}
		p.count(s, 1)
	}
	p.expireLocked(now())
}

// count counts a producer towards the quotas (by = 1), or no longer (by = -1).
func (p *producerTable) count(s *producerState, by int64) {
	p.quota.AddState(quota.Account{Tenant: p.tenant, Name: s.account}, by*producerBytes)
}

// removeLocked removes a producer from memory. The caller holds p.mu.
func (p *producerTable) removeLocked(id int64) {
	if s := p.producers[id]; s != nil {
		p.count(s, -1)
		delete(p.producers, id)
	}
}

// expireLocked removes the producers without a batch for producerRetention from memory. The caller holds p.mu.
func (p *producerTable) expireLocked(at int64) {
	p.sweep = at + producerSweep.Milliseconds()
	for id, s := range p.producers {
		if at-s.at > producerRetention.Milliseconds() {
			p.removeLocked(id)
			p.expired[id] = struct{}{}
		}
	}
}

// release ends the use of a table whose topic this member no longer owns.
func (p *producerTable) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.producers {
		p.removeLocked(id)
	}
}

// append checks a batch against the producer's earlier batches and appends it. A duplicate gets the
// offset and the append time of the original.
func (p *producerTable) append(head *records.BatchHeader, appended *AppendedBatch, by producer, left *atomic.Bool,
	appendBatch func([]engine.AttributeWrite) (engine.PendingAppend, error),
) (duplicate bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left.Load() { // another member may have accepted batches since
		return false, engine.ErrNotOwner
	}
	at := now()
	if at >= p.sweep || len(p.producers) >= maxProducers && p.producers[head.ProducerID] == nil {
		p.expireLocked(at)
	}
	old := p.producers[head.ProducerID]
	if err := by.mayUse(head, old); err != nil {
		return false, err
	}
	last := lastSequence(head)
	if earlier, err := old.check(head, last); err != nil || earlier != nil {
		if earlier != nil {
			appended.First, appended.AppendTime, appended.ticket = earlier.offset, earlier.appendTime, earlier.ticket
		}
		return true, err
	}
	next := &producerState{epoch: head.ProducerEpoch, at: at, account: cmp.Or(by.owner, by.sender)}
	if old == nil {
		payer := quota.Account{Tenant: p.tenant, Name: next.account}
		if err := p.quota.ReserveState(payer, producerBytes); err != nil {
			return false, err
		}
		defer func() {
			if err != nil {
				p.quota.AddState(payer, -producerBytes)
			}
		}()
	}
	if old != nil && old.epoch == head.ProducerEpoch {
		next.batches = slices.Clone(old.batches[max(0, len(old.batches)-trackedBatches+1):])
	}
	next.batches = append(next.batches, trackedBatch{first: head.Sequence, last: last, appendTime: appended.AppendTime})
	sent := &next.batches[len(next.batches)-1]
	evicted := p.evictLocked(head.ProducerID, next.account)
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
		p.removeLocked(id)
		delete(p.expired, id)
	}
	if old != nil && old.account != next.account {
		p.count(old, -1)
		p.count(next, 1)
	}
	delete(p.expired, head.ProducerID)
	p.producers[head.ProducerID] = next
	appended.First, appended.ticket = sent.offset, ticket
	return false, nil
}

// repeated returns the earlier batch that a batch repeats, if there is one.
func (p *producerTable) repeated(head *records.BatchHeader, by producer) *trackedBatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.producers[head.ProducerID]
	if by.mayUse(head, old) != nil {
		return nil
	}
	earlier, err := old.check(head, lastSequence(head))
	if err != nil {
		return nil
	}
	return earlier
}

// mayUse returns an error unless the sender may use the producer id. The account that an id was issued for may
// raise its epoch, as clients do themselves after an error (KIP-360). Other accounts cannot, so they fence nobody.
func (by producer) mayUse(head *records.BatchHeader, state *producerState) error {
	owner, epoch := by.owner, int16(0)
	if state != nil {
		owner, epoch = cmp.Or(owner, state.account), state.epoch
	}
	switch {
	case owner == "" || owner == by.sender:
		return nil
	case head.ProducerEpoch > epoch:
		return errs.Newf(errs.Conflict, "%w: id %d, epoch %d", ErrUnissuedEpoch, head.ProducerID, head.ProducerEpoch)
	}
	return errs.Newf(errs.Conflict, "%w: id %d", ErrProducerID, head.ProducerID)
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

// maxEvicted bounds the stored producers that one batch deletes.
const maxEvicted = 100

// evictLocked returns the stored producers to delete with the next batch of a producer: expired ones, and the oldest
// one when the table is full. An account that has producers in a
// full table loses its own. The caller holds p.mu.
func (p *producerTable) evictLocked(next int64, account string) (gone []int64) {
	for id := range p.expired {
		if len(gone) == maxEvicted {
			break
		}
		if id != next {
			gone = append(gone, id)
		}
	}
	if len(p.producers) < maxProducers || p.producers[next] != nil {
		return gone
	}
	oldest, own := int64(-1), false
	for id, s := range p.producers {
		ofAccount := s.account == account
		if oldest < 0 || ofAccount && !own || ofAccount == own && s.at < p.producers[oldest].at {
			oldest, own = id, ofAccount
		}
	}
	return append(gone, oldest)
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
