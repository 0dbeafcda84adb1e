package messaging

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/base/workpool"
	"freshet/internal/storage/engine"
)

// Produce appends one message and returns once the message is durable.
func (b *Broker) Produce(ctx context.Context, name names.Topic, m *Message) (Produced, error) {
	t, err := b.resolve(ctx, name)
	if err != nil {
		return Produced{}, err
	}
	live := b.liveOf(t.id)
	r := b.rulesOf(t.topic, live)
	admit := b.admit
	if r.validation != notValidated && len(m.Payload) > workpool.SmallBytes {
		admit = b.admitLarge
	}
	version, err := admit(ctx, t.topic, r, m)
	if err != nil {
		return Produced{}, err
	}
	partition := t.choosePartition(live, m)
	msgs := []engine.Message{m.toEngine(version, r.deduplicate)}
	appended, err := b.append(ctx, t.id, partition, msgs)
	if err != nil {
		return Produced{}, err
	}
	if !appended[0].Duplicate {
		live.in.add(len(m.Payload))
	}
	return Produced{ID: t.messageID(appended[0].ID), SchemaVersion: version, Duplicate: appended[0].Duplicate}, nil
}

// choosePartition picks the partition of a message: the partition in the topic's name, else by key, else
// round robin. A message with a deduplication key but no partition key is routed by that key, so
// that a retry reaches the same partition.
func (t target) choosePartition(live *liveTopic, m *Message) int32 {
	switch {
	case t.partitions <= 1:
		return 0
	case t.partition >= 0:
		return t.partition
	case (m.Key != "" || m.EmptyKey) && live.murmur2(t.topic):
		return names.RouteMurmur2(m.Key, t.partitions)
	case m.Key != "" || m.EmptyKey:
		return names.Route(m.Key, t.partitions)
	case m.IdempotencyKey != "":
		return names.Route(m.IdempotencyKey, t.partitions)
	case m.Producer != "" && m.HasSequence:
		return names.Route(m.Producer, t.partitions)
	}
	return int32(live.roundRobin.Add(1) % uint32(t.partitions))
}

// append writes messages to the engine. It creates or configures the topic there if the engine
// lacks it.
func (b *Broker) append(ctx context.Context, id engine.TopicID, partition int32,
	msgs []engine.Message,
) ([]engine.Appended, error) {
	size := sizeOf(msgs)
	if err := b.quota.ReserveBytes(size); err != nil {
		return nil, err
	}
	defer b.quota.ReleaseBytes(size)
	appended, err := b.engine.Append(ctx, id, partition, msgs)
	if errors.Is(err, engine.ErrNoTopic) || errors.Is(err, engine.ErrNoPartition) {
		err = b.repair(ctx, id, func() (err error) {
			appended, err = b.engine.Append(ctx, id, partition, msgs)
			return err
		})
	}
	return appended, err
}

// sizeOf estimates the bytes that messages will take in the store.
func sizeOf(msgs []engine.Message) (n int64) {
	for i := range msgs {
		m := &msgs[i]
		n += int64(len(m.Payload) + len(m.Key))
		for _, p := range m.Properties {
			n += int64(len(p.Key) + len(p.Value))
		}
	}
	return n
}

// ProduceResult is the result for one message of ProduceBatch.
type ProduceResult struct {
	Produced
	Err error
}

const batchWriters = 16

// ProduceBatch appends messages. The messages of one partition keep their order and succeed or fail
// together; a message that violates a rule fails alone. ProduceBatch itself returns an error only
// when it stored nothing.
func (b *Broker) ProduceBatch(ctx context.Context, name names.Topic, msgs []Message) ([]ProduceResult, error) {
	if len(msgs) == 0 || len(msgs) > b.limits.MaxBatch {
		return nil, errs.Newf(errs.TooLarge, "%w: %d messages, must be between 1 and %d", ErrBatch, len(msgs),
			b.limits.MaxBatch)
	}
	t, err := b.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	live := b.liveOf(t.id)
	r := b.rulesOf(t.topic, live)
	results := make([]ProduceResult, len(msgs))
	if err := b.admitBatch(ctx, t.topic, r, msgs, results); err != nil {
		return nil, err
	}
	byPartition := make(map[int32][]int, 1)
	turn := int32(-1)
	for i := range msgs {
		m := &msgs[i]
		if results[i].Err != nil {
			continue
		}
		free := m.Key == "" && !m.EmptyKey && m.IdempotencyKey == "" && (m.Producer == "" || !m.HasSequence)
		if free && turn < 0 {
			turn = t.choosePartition(live, m) // the keyless messages of a batch share a partition
		}
		p := turn
		if !free {
			p = t.choosePartition(live, m)
		}
		if byPartition[p] == nil {
			byPartition[p] = make([]int, 0, len(msgs)-i)
		}
		byPartition[p] = append(byPartition[p], i)
	}
	if len(byPartition) == 1 { // the usual case: no goroutines needed
		for p, indexes := range byPartition {
			b.producePartition(ctx, t, p, msgs, indexes, results, r.deduplicate)
		}
		return results, nil
	}
	var writers errgroup.Group
	writers.SetLimit(batchWriters)
	for p, indexes := range byPartition {
		writers.Go(func() error {
			b.producePartition(ctx, t, p, msgs, indexes, results, r.deduplicate)
			return nil
		})
	}
	_ = writers.Wait() // errors are in results
	return results, nil
}

// admitBatch validates every message and stores schema versions and errors in results. It returns
// an error only when ctx ends first.
func (b *Broker) admitBatch(ctx context.Context, t *topic, r *rules, msgs []Message, results []ProduceResult) error {
	admit := func() error {
		for i := range msgs {
			if err := ctx.Err(); err != nil {
				return err
			}
			results[i].SchemaVersion, results[i].Err = b.admit(ctx, t, r, &msgs[i])
		}
		return nil
	}
	if r.validation == notValidated {
		return admit()
	}
	return b.pool.Job(ctx).Do(workpool.Payloads, admit)
}

// producePartition appends the messages with the given indexes to one partition.
func (b *Broker) producePartition(ctx context.Context, t target, partition int32, msgs []Message, indexes []int,
	results []ProduceResult, deduplicate bool,
) {
	engineMessages := make([]engine.Message, len(indexes))
	for i, m := range indexes {
		engineMessages[i] = msgs[m].toEngine(results[m].SchemaVersion, deduplicate)
	}
	appended, err := b.append(ctx, t.id, partition, engineMessages)
	count, bytes := 0, 0
	for i, m := range indexes {
		if err != nil {
			results[m].Err = err
			continue
		}
		results[m].ID, results[m].Duplicate = t.messageID(appended[i].ID), appended[i].Duplicate
		if !appended[i].Duplicate {
			count, bytes = count+1, bytes+len(msgs[m].Payload)
		}
	}
	b.liveOf(t.id).in.addMany(count, bytes)
}
