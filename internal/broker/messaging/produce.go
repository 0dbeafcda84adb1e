package messaging

import (
	"context"

	"golang.org/x/sync/errgroup"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
)

// Producer is the part of a broker that appends messages to topics.
type Producer struct {
	engine    engine.Log
	catalogue *Catalogue
	topics    *engineTopics
	live      *liveTopics
	admission *admission
	limits    *Limits
	quota     *quota.Cluster
}

// Produce appends one message and returns once the message is durable.
func (p *Producer) Produce(ctx context.Context, name names.Topic, m *Message) (Produced, error) {
	t, err := p.catalogue.resolve(ctx, name)
	if err != nil {
		return Produced{}, err
	}
	live := p.live.of(t.id)
	r := p.live.rules(t.topic, live)
	version, err := p.admission.admitOne(ctx, t.topic, r, m)
	if err != nil {
		live.failed.add(0)
		return Produced{}, err
	}
	partition := t.choosePartition(live, m)
	msgs := []engine.Message{m.toEngine(version, r.deduplicate)}
	appended, err := p.append(ctx, t.id, partition, msgs)
	if err != nil {
		live.failed.add(0)
		return Produced{}, err
	}
	if !appended[0].Duplicate {
		live.in.add(len(m.Payload))
	}
	return Produced{ID: t.messageID(appended[0].ID), SchemaVersion: version, Duplicate: appended[0].Duplicate}, nil
}

// choosePartition picks the partition of a message: by route, else round robin.
func (t target) choosePartition(live *liveTopic, m *Message) int32 {
	if partition, ok := t.route(m); ok {
		return partition
	}
	return live.nextPartition(t.partitions)
}

// route returns the partition that the topic's name or the message determines; ok is false for a message
// that may go to any partition. A message with a deduplication key but no partition key is routed by
// that key, so that a retry reaches the same partition.
func (t target) route(m *Message) (partition int32, ok bool) {
	switch {
	case t.partitions <= 1:
		return 0, true
	case t.partition >= 0:
		return t.partition, true
	case (m.Key != "" || m.EmptyKey) && t.murmur2():
		return names.RouteMurmur2(m.Key, t.partitions), true
	case m.Key != "" || m.EmptyKey:
		return names.Route(m.Key, t.partitions), true
	case m.replayOf != "":
		return names.Route(m.replayOf, t.partitions), true
	case m.IdempotencyKey != "":
		return names.Route(m.IdempotencyKey, t.partitions), true
	case m.Producer != "" && m.HasSequence:
		return names.Route(m.Producer, t.partitions), true
	}
	return 0, false
}

// murmur2 reports whether keys are routed as Kafka clients do.
func (t *topic) murmur2() bool { return t.policies.Kafka[configRouting] == routingMurmur2 }

// append writes messages to the engine. It creates or configures the topic there if the engine
// lacks it.
func (p *Producer) append(ctx context.Context, id engine.TopicID, partition int32,
	msgs []engine.Message,
) ([]engine.Appended, error) {
	size := sizeOf(msgs)
	if err := p.quota.ReserveBytes(size); err != nil {
		return nil, err
	}
	defer p.quota.ReleaseBytes(size)
	return onTopic(ctx, p.topics, id, func() ([]engine.Appended, error) {
		return p.engine.Append(ctx, id, partition, msgs)
	})
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
// together; a message that violates a rule fails alone. When one breaks the contract of the topic, no
// message is stored. ProduceBatch itself returns an error only when it stored nothing.
func (p *Producer) ProduceBatch(ctx context.Context, name names.Topic, msgs []Message) ([]ProduceResult, error) {
	return p.produceBatch(ctx, name, msgs, true)
}

// produceBatch is ProduceBatch. Unless whole is set, a message that breaks the contract fails alone.
func (p *Producer) produceBatch(ctx context.Context, name names.Topic, msgs []Message, whole bool,
) ([]ProduceResult, error) {
	if len(msgs) == 0 || len(msgs) > p.limits.MaxBatch {
		return nil, errs.Newf(errs.TooLarge, "%w: %d messages, must be between 1 and %d", ErrBatch, len(msgs),
			p.limits.MaxBatch)
	}
	t, err := p.catalogue.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	live := p.live.of(t.id)
	r := p.live.rules(t.topic, live)
	results := make([]ProduceResult, len(msgs))
	if err := p.admission.admitBatch(ctx, t.topic, r, msgs, results, whole); err != nil {
		live.failed.addMany(len(msgs), 0)
		return nil, err
	}
	defer live.countFailed(results)
	byPartition := t.groupByPartition(live, msgs, results)
	if len(byPartition) == 1 { // the usual case: no goroutines needed
		for partition, indexes := range byPartition {
			p.producePartition(ctx, t, partition, msgs, indexes, results, r.deduplicate)
		}
		return results, nil
	}
	var writers errgroup.Group
	writers.SetLimit(batchWriters)
	for partition, indexes := range byPartition {
		writers.Go(func() error {
			p.producePartition(ctx, t, partition, msgs, indexes, results, r.deduplicate)
			return nil
		})
	}
	_ = writers.Wait() // errors are in results
	return results, nil
}

// countFailed counts the results with an error.
func (l *liveTopic) countFailed(results []ProduceResult) {
	n := 0
	for i := range results {
		if results[i].Err != nil {
			n++
		}
	}
	if n > 0 {
		l.failed.addMany(n, 0)
	}
}

// groupByPartition returns the indexes of the messages without an error in results, by partition. The
// messages that may go to any partition share one.
func (t target) groupByPartition(live *liveTopic, msgs []Message, results []ProduceResult) map[int32][]int {
	byPartition := make(map[int32][]int, 1)
	shared := int32(-1)
	for i := range msgs {
		if results[i].Err != nil {
			continue
		}
		partition, ok := t.route(&msgs[i])
		if !ok {
			if shared < 0 {
				shared = live.nextPartition(t.partitions)
			}
			partition = shared
		}
		if byPartition[partition] == nil {
			byPartition[partition] = make([]int, 0, len(msgs)-i)
		}
		byPartition[partition] = append(byPartition[partition], i)
	}
	return byPartition
}

// producePartition appends the messages with the given indexes to one partition.
func (p *Producer) producePartition(ctx context.Context, t target, partition int32, msgs []Message, indexes []int,
	results []ProduceResult, deduplicate bool,
) {
	engineMessages := make([]engine.Message, len(indexes))
	for i, m := range indexes {
		engineMessages[i] = msgs[m].toEngine(results[m].SchemaVersion, deduplicate)
	}
	appended, err := p.append(ctx, t.id, partition, engineMessages)
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
	p.live.of(t.id).in.addMany(count, bytes)
}
