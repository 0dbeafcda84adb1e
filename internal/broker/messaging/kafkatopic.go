package messaging

import (
	"context"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// KafkaTopic is a topic as the Kafka protocol uses it: partitions are logs of batches, and an
// offset is the engine's entry number.
type KafkaTopic struct {
	b     *Broker
	topic *topic
	live  *liveTopic
	rules *rules
}

// KafkaTopic looks a topic up. For the name of a partition it returns ErrPartitionName.
func (b *Broker) KafkaTopic(ctx context.Context, name names.Topic) (*KafkaTopic, error) {
	t, err := b.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if t.partition >= 0 {
		return nil, ErrPartitionName
	}
	return b.newKafkaTopic(t.topic), nil
}

// KafkaTopicByID looks a topic up by its incarnation number.
func (b *Broker) KafkaTopicByID(ctx context.Context, id uint64) (*KafkaTopic, error) {
	t, ok := b.catalogue.View().byID.Get(engine.TopicID(id))
	if !ok {
		fresh, err := b.catalogue.Fresh(ctx)
		if err != nil {
			return nil, err
		}
		if t, ok = fresh.byID.Get(engine.TopicID(id)); !ok {
			return nil, ErrNoTopic
		}
	}
	return b.newKafkaTopic(t), nil
}

func (b *Broker) newKafkaTopic(t *topic) *KafkaTopic {
	live := b.liveOf(t.id)
	return &KafkaTopic{b: b, topic: t, live: live, rules: b.rulesOf(t, live)}
}

// KafkaTopics calls visit for the topics of a namespace in order of their names, until visit
// returns false.
func (b *Broker) KafkaTopics(ctx context.Context, ns names.Namespace, visit func(*KafkaTopic) bool) error {
	c, err := b.catalogue.Fresh(ctx)
	if err != nil {
		return err
	}
	if _, err := existingNamespace(c, ns); err != nil {
		return err
	}
	c.topicsOf(ns, func(t *topic) bool { return visit(b.newKafkaTopic(t)) })
	return nil
}

// TopicsRevision changes whenever a topic is created, deleted or gets more partitions. It also
// changes with every other change of the catalogue.
func (b *Broker) TopicsRevision() uint64 { return b.catalogue.Position() }

// PartitionsOf returns the number of partitions of a topic's incarnation, or 0 when the cached
// catalogue does not have it.
func (b *Broker) PartitionsOf(id engine.TopicID) int32 {
	t, ok := b.catalogue.View().byID.Get(id)
	if !ok {
		return 0
	}
	return max(t.partitions, 1)
}

// CreateKafkaTopic creates a partitioned topic. With 0 partitions it gets the namespace's number
// for automatically created topics, at least one. With dryRun it only validates the request.
func (b *Broker) CreateKafkaTopic(ctx context.Context, name names.Topic, partitions int32, config map[string]string,
	dryRun bool,
) (*KafkaTopic, error) {
	if _, err := names.NewTopic(name.Namespace.Tenant, name.Namespace.Name, name.Local); err != nil {
		return nil, errs.Newf(errs.Invalid, "%w: %w", ErrName, err)
	}
	if partitions < 0 || partitions > b.limits.Partitions {
		return nil, errs.Newf(errs.Invalid, "%w: must be between 1 and %d", ErrPartitionCount, b.limits.Partitions)
	}
	policies := &Policies{Kafka: map[string]string{configRouting: routingMurmur2, configRetentionBytes: "-1"}}
	for name, value := range config {
		policies.put(name, value, false)
	}
	if err := policies.validate(&b.limits); err != nil {
		return nil, err
	}
	if dryRun {
		if _, err := b.resolve(ctx, name); err == nil {
			return nil, ErrTopicExists
		}
		_, err := b.Namespace(ctx, name.Namespace)
		return nil, err
	}
	t, err := b.createTopic(ctx, name, false, func(ns *namespace) (topicRecord, error) {
		auto := valueOr(ns.policies.AutoTopicCreation, defaults.AutoTopicCreation)
		if partitions == 0 {
			partitions = max(auto.Partitions, 1)
		}
		return topicRecord{Partitions: partitions, Policies: policies}, nil
	})
	if err != nil {
		return nil, err
	}
	return b.newKafkaTopic(t), nil
}

// AutoCreatesTopics reports whether a namespace allows the automatic creation of topics.
func (b *Broker) AutoCreatesTopics(ns names.Namespace) bool {
	space, ok := b.catalogue.View().namespace(ns)
	return ok && valueOr(space.policies.AutoTopicCreation, defaults.AutoTopicCreation).Allow
}

// Name returns the topic's name.
func (t *KafkaTopic) Name() names.Topic { return t.topic.name }

// ID returns the topic's incarnation number.
func (t *KafkaTopic) ID() uint64 { return uint64(t.topic.id) }

// Partitions returns the number of partitions. An unpartitioned topic has one.
func (t *KafkaTopic) Partitions() int32 { return max(t.topic.partitions, 1) }

// Partitioned reports whether the topic can get more partitions.
func (t *KafkaTopic) Partitioned() bool { return t.topic.partitions > 0 }

// engineCall calls the engine. If the engine lacks the topic or partition, engineCall creates it
// and calls again.
func (t *KafkaTopic) engineCall(ctx context.Context, call func() error) error {
	err := call()
	if errors.Is(err, engine.ErrNoTopic) || errors.Is(err, engine.ErrNoPartition) {
		err = t.b.repair(ctx, t.topic.id, call)
	}
	return err
}

// Read calls visit for the stored batches and messages from an offset on, until visit returns
// false, and returns the first and next offset of the partition.
func (t *KafkaTopic) Read(ctx context.Context, partition int32, from uint64,
	visit func(*engine.StoredValue) (bool, error),
) (engine.Extent, error) {
	var extent engine.Extent
	visitFrom := visit
	if visit != nil {
		visitFrom = func(s *engine.StoredValue) (bool, error) {
			from = s.First + uint64(max(s.Run.Count, 1)) // a repeated call continues here
			return visit(s)
		}
	}
	err := t.engineCall(ctx, func() (err error) {
		extent, err = t.b.engine.ReadBatches(ctx, t.topic.id, partition, from, visitFrom)
		return err
	})
	return extent, err
}

// Extents returns the first and next offset of each partition.
func (t *KafkaTopic) Extents(ctx context.Context) ([]engine.Extent, error) {
	stats, err := t.b.describe(ctx, t.topic)
	if err != nil {
		return nil, err
	}
	extents := make([]engine.Extent, len(stats.Partitions))
	for i := range stats.Partitions {
		extents[i] = engine.Extent{First: stats.Partitions[i].First, Next: stats.Partitions[i].Next}
	}
	return extents, nil
}

// PositionAt returns a position in a partition as WaitForAppend expects it.
func (t *KafkaTopic) PositionAt(partition int32, offset uint64) engine.PartitionPosition {
	return engine.PartitionPosition{Topic: t.topic.id, Partition: partition, Entry: offset}
}

// Find returns the first message with a timestamp of at least millis.
func (t *KafkaTopic) Find(ctx context.Context, partition int32, millis int64) (engine.FindResult, error) {
	var found engine.FindResult
	err := t.engineCall(ctx, func() (err error) {
		found, err = t.b.engine.FindByTime(ctx, t.topic.id, partition, millis)
		return err
	})
	return found, err
}

// FindNewest returns the message with the largest timestamp.
func (t *KafkaTopic) FindNewest(ctx context.Context, partition int32) (engine.FindResult, error) {
	var found engine.FindResult
	err := t.engineCall(ctx, func() (err error) {
		found, err = t.b.engine.FindNewest(ctx, t.topic.id, partition)
		return err
	})
	return found, err
}

// WaitForAppend returns when one of the positions has been written, or when ctx ends or the broker drains.
func (b *Broker) WaitForAppend(ctx context.Context, positions []engine.PartitionPosition) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.draining, cancel)()
	return b.engine.WaitEntries(ctx, positions)
}

// CountDelivered adds messages to the topic's delivery meter.
func (t *KafkaTopic) CountDelivered(messages, bytes int) { t.live.out.addMany(messages, bytes) }
