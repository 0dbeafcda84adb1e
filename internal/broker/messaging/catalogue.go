package messaging

import (
	"context"

	"freshet/internal/base/names"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/statemachine"
)

// Catalogue is the part of a broker that records which tenants, namespaces and topics exist, and their
// policies. A change is durable in the catalogue's journal first and reaches the engine afterwards.
type Catalogue struct {
	state     *statemachine.Machine[*catalogueState]
	topics    *engineTopics
	contracts *contracts
	limits    *Limits
	quota     *quota.Cluster
	shards    int // 0 means that all topics are in this process
}

// target is the topic, or the partition of a topic, that a name resolves to.
type target struct {
	*topic
	partition int32 // engine.AllPartitions, or the partition in the name
}

// resolve looks a name up. Another member may have just created the topic, so after a miss resolve
// reads the journal and looks again.
func (cat *Catalogue) resolve(ctx context.Context, name names.Topic) (target, error) {
	if t, ok := lookup(cat.state.View(), name); ok {
		return t, nil
	}
	fresh, err := cat.state.Fresh(ctx)
	if err != nil {
		return target{}, err
	}
	if t, ok := lookup(fresh, name); ok {
		return t, nil
	}
	return target{}, missingError(fresh, name)
}

func lookup(c *catalogueState, name names.Topic) (target, bool) {
	if t, ok := c.topic(name); ok {
		return target{topic: t, partition: engine.AllPartitions}, true
	}
	parent, index, ok := name.Partition()
	if !ok {
		return target{}, false
	}
	t, ok := c.topic(parent)
	if !ok || index >= t.partitions {
		return target{}, false
	}
	return target{topic: t, partition: index}, true
}

// missingError returns an error for the first part of a topic's name that does not exist.
func missingError(c *catalogueState, name names.Topic) error {
	if _, ok := c.tenants.Get(name.Namespace.Tenant); !ok {
		return ErrNoTenant
	}
	if _, ok := c.namespace(name.Namespace); !ok {
		return ErrNoNamespace
	}
	return ErrNoTopic
}

// fresh resolves a name on an up-to-date catalogue.
func (cat *Catalogue) fresh(ctx context.Context, name names.Topic) (target, error) {
	if _, err := cat.state.Fresh(ctx); err != nil {
		return target{}, err
	}
	return cat.resolve(ctx, name)
}

// describeFresh resolves a name on an up-to-date catalogue and returns the engine's statistics.
func (cat *Catalogue) describeFresh(ctx context.Context, name names.Topic) (target, engine.TopicStats, error) {
	t, err := cat.fresh(ctx, name)
	if err != nil {
		return t, engine.TopicStats{}, err
	}
	stats, err := cat.topics.describe(ctx, t.topic)
	return t, stats, err
}

func (cat *Catalogue) shardOf(id engine.TopicID) int {
	return int(uint64(id) % uint64(max(cat.shards, 1))) //nolint:gosec // less than the number of shards
}

// recordInShardOf returns the record of a new topic in the shard of t, so that moving a message between the
// two topics is one write.
func (cat *Catalogue) recordInShardOf(t *topic) topicRecord {
	if cat.shards == 0 {
		return topicRecord{}
	}
	shard := cat.shardOf(t.id)
	return topicRecord{Shard: &shard}
}

// IDOf returns the id of the topic that a name resolves to.
func (cat *Catalogue) IDOf(ctx context.Context, name names.Topic) (engine.TopicID, bool) {
	t, err := cat.resolve(ctx, name)
	if err != nil {
		return 0, false
	}
	return t.id, true
}
