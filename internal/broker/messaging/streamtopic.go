package messaging

import (
	"context"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// StreamTopic is a topic as the Kafka protocol uses it: partitions are logs of batches, and an
// offset is the engine's entry number.
type StreamTopic struct {
	b     *Broker
	topic *topic
	live  *liveTopic
	rules *rules
}

// StreamTopic looks a topic up. For the name of a partition it returns ErrPartitionName.
func (b *Broker) StreamTopic(ctx context.Context, name names.Topic) (*StreamTopic, error) {
	t, err := b.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if t.partition >= 0 {
		return nil, ErrPartitionName
	}
	return b.streamTopic(t.topic), nil
}

// StreamTopicByID looks a topic up by its incarnation number.
func (b *Broker) StreamTopicByID(ctx context.Context, id uint64) (*StreamTopic, error) {
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
	return b.streamTopic(t), nil
}

func (b *Broker) streamTopic(t *topic) *StreamTopic {
	live := b.liveOf(t.id)
	return &StreamTopic{b: b, topic: t, live: live, rules: b.rulesOf(t, live)}
}

// StreamTopics calls visit for the topics of a namespace in order of their names, until visit
// returns false.
func (b *Broker) StreamTopics(ctx context.Context, ns names.Namespace, visit func(*StreamTopic) bool) error {
	c, err := b.catalogue.Fresh(ctx)
	if err != nil {
		return err
	}
	if _, err := existingNamespace(c, ns); err != nil {
		return err
	}
	c.topicsOf(ns, func(t *topic) bool { return visit(b.streamTopic(t)) })
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

// CreateStreamTopic creates a partitioned topic. With 0 partitions it gets the namespace's number
// for automatically created topics, at least one. With dryRun it only validates the request.
func (b *Broker) CreateStreamTopic(ctx context.Context, name names.Topic, partitions int32, config map[string]string,
	dryRun bool,
) (*StreamTopic, error) {
	if _, err := names.NewTopic(name.Namespace.Tenant, name.Namespace.Name, name.Local); err != nil {
		return nil, errs.Newf(errs.Invalid, "%w: %w", ErrName, err)
	}
	if partitions < 0 || partitions > b.limits.Partitions {
		return nil, errs.Newf(errs.Invalid, "%w: must be between 1 and %d", ErrPartitionCount, b.limits.Partitions)
	}
	policies := &Policies{Stream: map[string]string{configRouting: routingMurmur2, configRetentionBytes: "-1"}}
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
	t, err := b.create(ctx, name, false, func(ns *namespace) (topicRecord, error) {
		auto := inForce(ns.policies.AutoTopicCreation, defaults.AutoTopicCreation)
		if partitions == 0 {
			partitions = max(auto.Partitions, 1)
		}
		return topicRecord{Partitions: partitions, Policies: policies}, nil
	})
	if err != nil {
		return nil, err
	}
	return b.streamTopic(t), nil
}

// MayCreateTopics reports whether a namespace allows the automatic creation of topics.
func (b *Broker) MayCreateTopics(ns names.Namespace) bool {
	space, ok := b.catalogue.View().namespace(ns)
	return ok && inForce(space.policies.AutoTopicCreation, defaults.AutoTopicCreation).Allow
}

// Name returns the topic's name.
func (t *StreamTopic) Name() names.Topic { return t.topic.name }

// ID returns the topic's incarnation number.
func (t *StreamTopic) ID() uint64 { return uint64(t.topic.id) }

// Partitions returns the number of partitions. An unpartitioned topic has one.
func (t *StreamTopic) Partitions() int32 { return max(t.topic.partitions, 1) }

// Partitioned reports whether the topic can get more partitions.
func (t *StreamTopic) Partitioned() bool { return t.topic.partitions > 0 }

// engineCall calls the engine. If the engine lacks the topic or partition, engineCall creates it
// and calls again.
func (t *StreamTopic) engineCall(ctx context.Context, call func() error) error {
	err := call()
	if errors.Is(err, engine.ErrNoTopic) || errors.Is(err, engine.ErrNoPartition) {
		err = t.b.repair(ctx, t.topic.id, call)
	}
	return err
}

// Read calls visit for the stored batches and messages from an offset on, until visit returns
// false, and returns the first and next offset of the partition.
func (t *StreamTopic) Read(ctx context.Context, partition int32, from uint64,
	visit func(*engine.Stored) (bool, error),
) (engine.Extent, error) {
	var extent engine.Extent
	see := visit
	if visit != nil {
		see = func(s *engine.Stored) (bool, error) {
			from = s.First + uint64(max(s.Run.Count, 1)) // a repeated call continues here
			return visit(s)
		}
	}
	err := t.engineCall(ctx, func() (err error) {
		extent, err = t.b.engine.ReadRuns(ctx, t.topic.id, partition, from, see)
		return err
	})
	return extent, err
}

// Extents returns the first and next offset of each partition.
func (t *StreamTopic) Extents(ctx context.Context) ([]engine.Extent, error) {
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

// Mark returns a position in a partition as WaitForAppend expects it.
func (t *StreamTopic) Mark(partition int32, offset uint64) engine.Mark {
	return engine.Mark{Topic: t.topic.id, Partition: partition, Entry: offset}
}

// Find returns the first message with a timestamp of at least millis.
func (t *StreamTopic) Find(ctx context.Context, partition int32, millis int64) (engine.Found, error) {
	var found engine.Found
	err := t.engineCall(ctx, func() (err error) {
		found, err = t.b.engine.Find(ctx, t.topic.id, partition, millis)
		return err
	})
	return found, err
}

// FindNewest returns the message with the largest timestamp.
func (t *StreamTopic) FindNewest(ctx context.Context, partition int32) (engine.Found, error) {
	var found engine.Found
	err := t.engineCall(ctx, func() (err error) {
		found, err = t.b.engine.FindNewest(ctx, t.topic.id, partition)
		return err
	})
	return found, err
}

// Grown returns when one of the positions has been written, or when ctx ends or the broker drains.
func (b *Broker) Grown(ctx context.Context, marks []engine.Mark) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.draining, cancel)()
	return b.engine.Grown(ctx, marks)
}

// Delivered adds messages to the topic's delivery meter.
func (t *StreamTopic) Delivered(messages, bytes int) { t.live.out.addMany(messages, bytes) }
