package messaging

import (
	"context"

	"freshet/internal/base/names"
	"freshet/internal/base/unpacking"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
)

// KafkaLog is the part of a broker that the Kafka protocol uses: topics as logs of record batches.
type KafkaLog struct {
	engine    engine.Batches
	catalogue *Catalogue
	topics    *engineTopics
	live      *liveTopics
	life      *lifecycle
	admission *admission
	contracts *contracts
	limits    *Limits
	quota     *quota.Cluster
	unpacking *unpacking.Budget
}

// KafkaTopic looks a topic up. For the name of a partition it returns ErrPartitionName.
func (l *KafkaLog) KafkaTopic(ctx context.Context, name names.Topic) (*KafkaTopic, error) {
	t, err := l.catalogue.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if t.partition >= 0 {
		return nil, ErrPartitionName
	}
	return l.newKafkaTopic(t.topic), nil
}

// KafkaTopicByID looks a topic up by its incarnation number.
func (l *KafkaLog) KafkaTopicByID(ctx context.Context, id uint64) (*KafkaTopic, error) {
	t, ok := l.catalogue.state.View().byID.Get(engine.TopicID(id))
	if !ok {
		fresh, err := l.catalogue.state.Fresh(ctx)
		if err != nil {
			return nil, err
		}
		if t, ok = fresh.byID.Get(engine.TopicID(id)); !ok {
			return nil, ErrNoTopic
		}
	}
	return l.newKafkaTopic(t), nil
}

func (l *KafkaLog) newKafkaTopic(t *topic) *KafkaTopic {
	live := l.live.of(t.id)
	return &KafkaTopic{log: l, topic: t, live: live, rules: l.live.rules(t, live)}
}

// KafkaTopics calls visit for the topics of a namespace in order of their names, until visit
// returns false.
func (l *KafkaLog) KafkaTopics(ctx context.Context, ns names.Namespace, visit func(*KafkaTopic) bool) error {
	c, err := l.catalogue.state.Fresh(ctx)
	if err != nil {
		return err
	}
	if _, err := existingNamespace(c, ns); err != nil {
		return err
	}
	c.topicsOf(ns, func(t *topic) bool { return visit(l.newKafkaTopic(t)) })
	return nil
}

// TopicsRevision changes whenever a topic is created, deleted or gets more partitions. It also
// changes with every other change of the catalogue.
func (l *KafkaLog) TopicsRevision() uint64 { return l.catalogue.state.Position() }

// HasTopicCached reports whether the cached catalogue of this member has a topic of that name. Other
// members may have changed the catalogue since.
func (l *KafkaLog) HasTopicCached(name names.Topic) bool {
	_, ok := l.catalogue.state.View().topic(name)
	return ok
}

// PartitionsOf returns the number of partitions of a topic's incarnation, or 0 when the cached
// catalogue does not have it.
func (l *KafkaLog) PartitionsOf(id engine.TopicID) int32 {
	t, ok := l.catalogue.state.View().byID.Get(id)
	if !ok {
		return 0
	}
	return max(t.partitions, 1)
}

// TopicNameCached returns the name of a topic's incarnation; false when the cached catalogue does not have it.
func (l *KafkaLog) TopicNameCached(id engine.TopicID) (names.Topic, bool) {
	t, ok := l.catalogue.state.View().byID.Get(id)
	if !ok {
		return names.Topic{}, false
	}
	return t.name, true
}

// CreateKafkaTopic creates a partitioned topic. With 0 partitions it gets the namespace's number
// for automatically created topics, at least one. With dryRun it only validates the request, and returns
// the topic as it would be created; the topic has no id.
func (l *KafkaLog) CreateKafkaTopic(ctx context.Context, name names.Topic, partitions int32, config map[string]string,
	dryRun bool,
) (*KafkaTopic, error) {
	if err := l.catalogue.checkNewTopic(name, partitions); err != nil {
		return nil, err
	}
	if err := l.contracts.check(ctx, config); err != nil {
		return nil, err
	}
	policies := &Policies{Kafka: map[string]string{configRouting: routingMurmur2, configRetentionBytes: "-1"}}
	for name, value := range config {
		policies.put(name, value, false)
	}
	if err := policies.validate(l.limits); err != nil {
		return nil, err
	}
	if dryRun {
		if _, err := l.catalogue.resolve(ctx, name); err == nil {
			return nil, ErrTopicExists
		}
		return l.describeNewTopic(ctx, name, partitions, policies)
	}
	t, err := l.catalogue.createTopic(ctx, name, false, func(ns *namespace) (topicRecord, error) {
		return topicRecord{Partitions: ns.kafkaPartitions(partitions), Policies: policies}, nil
	})
	if err != nil {
		return nil, err
	}
	return l.newKafkaTopic(t), nil
}

// describeNewTopic returns a topic as CreateKafkaTopic would create it.
func (l *KafkaLog) describeNewTopic(ctx context.Context, name names.Topic, partitions int32,
	policies *Policies,
) (*KafkaTopic, error) {
	c, err := l.catalogue.state.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	ns, err := existingNamespace(c, name.Namespace)
	if err != nil {
		return nil, err
	}
	if err := l.catalogue.checkCreation(c, ns, name); err != nil {
		return nil, err
	}
	t := &topic{name: name, partitions: ns.kafkaPartitions(partitions), policies: policies}
	rules := c.rules(t, l.limits)
	return &KafkaTopic{log: l, topic: t, live: &liveTopic{}, rules: &rules}, nil
}

// kafkaPartitions returns the number of partitions of a new topic for which the client requests some, or 0 for
// the namespace's number.
func (n *namespace) kafkaPartitions(requested int32) int32 {
	if requested > 0 {
		return requested
	}
	return max(valueOr(n.policies.AutoTopicCreation, defaults.AutoTopicCreation).Partitions, 1)
}

// WaitForAppend returns when one of the positions has been written, or when ctx ends or the broker drains.
func (l *KafkaLog) WaitForAppend(ctx context.Context, positions []engine.PartitionPosition) error {
	waiting, stop := l.life.untilDrain(ctx)
	defer stop()
	return l.engine.WaitEntries(waiting, positions)
}
