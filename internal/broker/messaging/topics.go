package messaging

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
)

// errTopicChanged means that the topic, or the policies that a new topic would get, changed after
// quota was reserved for it.
var errTopicChanged = errs.New(errs.Unavailable, "topic or its namespace changed concurrently; retry")

// maxChangedAttempts is how often a reservation is repeated. The first retry works on a catalogue that
// contains the changes of other members; each further one is for another concurrent change.
const maxChangedAttempts = 5

// retryWhileChanged calls try again while it fails with errTopicChanged.
func retryWhileChanged(try func() error) (err error) {
	for range maxChangedAttempts {
		if err = try(); !errors.Is(err, errTopicChanged) {
			return err
		}
	}
	return err
}

// Topic describes a topic.
type Topic struct {
	Name       names.Topic
	ID         uint64 // the incarnation number, first part of its message ids
	Partitions int32  // 0 when the topic is not partitioned
	Partition  int32  // the partition in the requested name, or -1
	Created    int64  // epoch milliseconds
	Terminated bool
	Policies   *Policies // of the topic itself; read-only
}

func (t target) describe() Topic {
	return Topic{
		Name: t.name, ID: uint64(t.id), Partitions: t.partitions, Partition: t.partition,
		Created: t.created, Terminated: t.terminated, Policies: t.policies,
	}
}

// Topic returns a topic. For the name of a partition it returns the partition's topic.
func (cat *Catalogue) Topic(ctx context.Context, name names.Topic) (Topic, error) {
	if _, err := cat.state.Fresh(ctx); err != nil {
		return Topic{}, err
	}
	t, err := cat.resolve(ctx, name)
	if err != nil {
		return Topic{}, err
	}
	return t.describe(), nil
}

// Topics calls visit for the topics of a namespace in order of their names, until visit returns
// false. Without a namespace it visits all topics.
func (cat *Catalogue) Topics(ctx context.Context, ns *names.Namespace, visit func(Topic) bool) error {
	c, err := cat.state.Fresh(ctx)
	if err != nil {
		return err
	}
	show := func(t *topic) bool {
		return visit(target{topic: t, partition: engine.AllPartitions}.describe())
	}
	if ns == nil {
		c.topics.Scan(func(item topicItem) bool { return show(item.topic) })
		return nil
	}
	if _, err := existingNamespace(c, *ns); err != nil {
		return err
	}
	c.topicsOf(*ns, show)
	return nil
}

// NewTopic has the options of a new topic.
type NewTopic struct {
	Partitions int32 // 0 for a topic that is not partitioned
	Properties map[string]string
	Contract   string // expression that every message must fulfil; "" for none
}

// CreateTopic creates a topic.
func (cat *Catalogue) CreateTopic(ctx context.Context, name names.Topic, opts NewTopic) error {
	if err := cat.checkNewTopic(name, opts.Partitions); err != nil {
		return err
	}
	if err := checkProperties(opts.Properties); err != nil {
		return err
	}
	var policies *Policies
	if len(opts.Properties) > 0 {
		policies = &Policies{Properties: opts.Properties}
	}
	if contract := strings.TrimSpace(opts.Contract); contract != "" {
		config := map[string]string{configRequire: contract}
		if err := cat.contracts.check(ctx, config); err != nil {
			return err
		}
		policies = &Policies{Properties: opts.Properties, Kafka: config}
	}
	_, err := cat.createTopic(ctx, name, false, func(*namespace) (topicRecord, error) {
		return topicRecord{Partitions: opts.Partitions, Policies: policies}, nil
	})
	return err
}

// checkNewTopic validates the name and the number of partitions of a new topic.
func (cat *Catalogue) checkNewTopic(name names.Topic, partitions int32) error {
	if _, err := names.NewTopic(name.Namespace.Tenant, name.Namespace.Name, name.Local); err != nil {
		return errs.Newf(errs.Invalid, "%w: %w", ErrName, err)
	}
	if partitions < 0 || partitions > cat.limits.Partitions {
		return errs.Newf(errs.Invalid, "%w: must be between 1 and %d", ErrPartitionCount, cat.limits.Partitions)
	}
	return nil
}

// createTopic appends the topic's first record to the journal and creates the topic in the engine. With
// ifMissing set, a topic that already exists is no error. make may be called more than once.
func (cat *Catalogue) createTopic(ctx context.Context, name names.Topic, ifMissing bool,
	make func(*namespace) (topicRecord, error),
) (t *topic, err error) {
	err = retryWhileChanged(func() error {
		t, err = cat.tryCreateTopic(ctx, name, ifMissing, make)
		return err
	})
	return t, err
}

// tryCreateTopic reserves quota according to the cached catalogue and creates the topic. It returns
// errTopicChanged when the reservation turns out too small.
func (cat *Catalogue) tryCreateTopic(ctx context.Context, name names.Topic, ifMissing bool,
	make func(*namespace) (topicRecord, error),
) (*topic, error) {
	reservation, n, err := cat.reserveTopic(ctx, name, make)
	if err != nil {
		return nil, err
	}
	defer reservation.Release()
	at := now()
	c, err := cat.state.Update(context.WithoutCancel(ctx), func(c *catalogueState) ([][]byte, error) {
		if _, ok := lookup(c, name); ok {
			if ifMissing {
				return nil, nil
			}
			return nil, ErrTopicExists
		}
		ns, err := existingNamespace(c, name.Namespace)
		if err != nil {
			return nil, err
		}
		if err := cat.checkCreation(c, ns, name); err != nil {
			return nil, err
		}
		rec, err := make(ns)
		if err != nil {
			return nil, err
		}
		rec.Shards = cat.shards
		if partitionsOf(rec.Partitions) > n {
			return nil, errTopicChanged
		}
		return [][]byte{record{Op: opCreateTopic, Name: path(name), At: at, Topic: &rec}.encode()}, nil
	})
	if err != nil {
		return nil, err
	}
	t, ok := lookup(c, name)
	if !ok {
		return nil, ErrNoTopic
	}
	err = cat.topics.ensureInEngine(ctx, cat.topics.engine, t.id)
	if errors.Is(err, ErrNoTopic) && !ifMissing {
		err = nil // created, and deleted by another caller since
	}
	return t.topic, err
}

// checkCreation returns an error unless a namespace may get another topic of that name. It checks for a dotted name
// last, so that all other errors are the same whether the other namespace exists or not: the caller may lack the
// permission to see it.
func (cat *Catalogue) checkCreation(c *catalogueState, ns *namespace, name names.Topic) error {
	// The name would denote a partition if its parent were created.
	if _, _, ok := name.Partition(); ok {
		return ErrPartitionName
	}
	if c.byID.Len() >= cat.limits.Topics {
		return errs.Newf(errs.Unavailable,
			"cluster has reached its limit of %d topics; delete some or raise the limit", cat.limits.Topics)
	}
	if limit := valueOr(ns.policies.MaxTopics, defaults.MaxTopics); limit > 0 && ns.topics >= limit {
		return errs.Newf(errs.Precondition, "%w: namespace %s may have %d topics", ErrTopicLimit, name.Namespace, limit)
	}
	return c.checkDottedName(name)
}

// HasTopic reports whether a topic, or partition, of that name exists. It returns false when the
// namespace does not exist.
func (cat *Catalogue) HasTopic(ctx context.Context, name names.Topic) (bool, error) {
	_, err := cat.resolve(ctx, name)
	if errs.KindOf(err) == errs.NotFound {
		return false, nil
	}
	return err == nil, err
}

// reserveTopic reserves quota for a topic as the cached catalogue would create it and returns the
// reserved number of partitions. A topic that already exists needs no quota.
func (cat *Catalogue) reserveTopic(ctx context.Context, name names.Topic,
	make func(*namespace) (topicRecord, error),
) (reservation quota.Reservation, n int64, err error) {
	c := cat.state.View()
	ns, ok := c.namespace(name.Namespace)
	if _, exists := lookup(c, name); exists || !ok {
		return quota.Reservation{}, 0, nil
	}
	rec, err := make(ns)
	if err != nil {
		return quota.Reservation{}, 0, err
	}
	n = partitionsOf(rec.Partitions)
	reservation, err = cat.quota.Reserve(ctx, quota.Topics, n)
	return reservation, n, err
}

// autoCreate creates the topic of a new schema or subscription if it does not exist and the
// namespace allows that (docs/spec/messages.md#m5).
func (cat *Catalogue) autoCreate(ctx context.Context, name names.Topic) (target, error) {
	if err := cat.checkNewTopic(name, 0); err != nil {
		return target{}, err
	}
	t, err := cat.resolve(ctx, name)
	if err == nil || errs.KindOf(err) != errs.NotFound {
		return t, err
	}
	if _, _, ok := name.Partition(); ok {
		return target{}, err
	}
	_, err = cat.createTopic(ctx, name, true, func(ns *namespace) (topicRecord, error) {
		auto := valueOr(ns.policies.AutoTopicCreation, defaults.AutoTopicCreation)
		if !auto.Allow {
			return topicRecord{}, ErrNoAutoCreation
		}
		return topicRecord{Partitions: auto.Partitions}, nil
	})
	if err != nil {
		return target{}, err
	}
	return cat.resolve(ctx, name)
}

// updateTopicRecord edits the mutable part of a topic and passes the result to the engine.
func (cat *Catalogue) updateTopicRecord(ctx context.Context, name names.Topic,
	edit func(t *topic, rec *topicRecord) error,
) error {
	var id engine.TopicID
	c, err := cat.state.Update(ctx, func(c *catalogueState) ([][]byte, error) {
		t, ok := lookup(c, name)
		if !ok {
			return nil, missingError(c, name)
		}
		id = t.id
		policies := t.policies.clone()
		rec := topicRecord{Partitions: t.partitions, Terminated: t.terminated, Policies: &policies}
		if err := edit(t.topic, &rec); err != nil {
			return nil, err
		}
		if err := rec.Policies.validate(cat.limits); err != nil {
			return nil, err
		}
		if err := cat.contracts.checkChange(t.policies, rec.Policies); err != nil {
			return nil, err
		}
		return [][]byte{record{Op: opTopic, ID: id, Topic: &rec}.encode()}, nil
	})
	if err != nil {
		return err
	}
	if t, ok := c.byID.Get(id); ok && t.pending != 0 {
		return cat.topics.configure(ctx, cat.topics.engine, id, t.pending)
	}
	return nil
}

// UpdateTopic changes a topic's own policies, permissions and properties. update may be called more
// than once and must depend on its argument only.
func (cat *Catalogue) UpdateTopic(ctx context.Context, name names.Topic, update func(*Policies) error) error {
	return cat.updateTopicRecord(ctx, name, func(_ *topic, rec *topicRecord) error { return update(rec.Policies) })
}

// SetProperties adds properties to a topic, or replaces those of the same name.
func (cat *Catalogue) SetProperties(ctx context.Context, name names.Topic, properties map[string]string) error {
	return cat.UpdateTopic(ctx, name, func(p *Policies) error {
		if p.Properties == nil {
			p.Properties = make(map[string]string, len(properties))
		}
		maps.Copy(p.Properties, properties)
		return nil
	})
}

// GrowTopic increases the number of partitions of a partitioned topic.
func (cat *Catalogue) GrowTopic(ctx context.Context, name names.Topic, partitions int32) error {
	return retryWhileChanged(func() error { return cat.tryGrowTopic(ctx, name, partitions) })
}

// tryGrowTopic reserves quota according to the cached catalogue and adds the partitions.
func (cat *Catalogue) tryGrowTopic(ctx context.Context, name names.Topic, partitions int32) error {
	before, err := cat.resolve(ctx, name)
	if err != nil {
		return err
	}
	reservation, err := cat.quota.Reserve(ctx, quota.Topics,
		int64(min(partitions, cat.limits.Partitions)-before.partitions))
	if err != nil {
		return err
	}
	defer reservation.Release()
	return cat.updateTopicRecord(context.WithoutCancel(ctx), name, func(t *topic, rec *topicRecord) error {
		if t.id != before.id {
			return errTopicChanged
		}
		if err := cat.checkGrowth(t, partitions); err != nil {
			return err
		}
		rec.Partitions = partitions
		return nil
	})
}

// Terminate makes a topic reject all further messages and returns the id of its last message.
func (cat *Catalogue) Terminate(ctx context.Context, name names.Topic) (names.MessageID, error) {
	err := cat.updateTopicRecord(ctx, name, func(t *topic, rec *topicRecord) error {
		if t.partitions > 0 {
			return ErrPartitioned
		}
		rec.Terminated = true
		return nil
	})
	if err != nil {
		return names.MessageID{}, err
	}
	t, stats, err := cat.describeFresh(ctx, name)
	if err != nil {
		return names.MessageID{}, err
	}
	return t.lastMessage(&stats), nil
}

// DeleteTopic removes a topic with its partitions, subscriptions, schemas and data. Without force
// it returns ErrTopicBusy while consumers wait on the topic.
func (cat *Catalogue) DeleteTopic(ctx context.Context, name names.Topic, force bool) error {
	t, err := cat.resolve(ctx, name)
	if err != nil {
		return err
	}
	if t.partition >= 0 {
		return errs.Newf(errs.Conflict, "%w: a partition is deleted with its topic; delete %s", ErrWrongKind, t.name)
	}
	if !force {
		stats, err := cat.topics.describe(ctx, t.topic)
		if err != nil {
			return err
		}
		for i := range stats.Subscriptions {
			if stats.Subscriptions[i].Waiting > 0 {
				return ErrTopicBusy
			}
		}
	}
	return cat.deleteTopic(ctx, t.topic)
}

// Delete removes this incarnation of the topic with its partitions, subscriptions, schemas and
// data, even while consumers wait on it. It returns ErrNoTopic when the incarnation no longer
// exists, even if another topic has its name now.
func (t *KafkaTopic) Delete(ctx context.Context) error {
	return t.log.catalogue.deleteTopic(ctx, t.topic)
}

// deleteTopic removes one incarnation of a topic.
func (cat *Catalogue) deleteTopic(ctx context.Context, t *topic) error {
	_, err := cat.state.UpdateWhenDiskFull(ctx, func(c *catalogueState) ([][]byte, error) {
		if _, ok := c.byID.Get(t.id); !ok {
			return nil, ErrNoTopic
		}
		return [][]byte{record{Op: opDropTopic, ID: t.id}.encode()}, nil
	})
	if err != nil {
		return err
	}
	// The journal decides that the topic no longer exists. If removing its data fails here,
	// reconcile removes it at the next start.
	if err := cat.topics.dropFromEngine(ctx, cat.topics.engine, t.id); err != nil {
		return fmt.Errorf("removing the data of deleted topic %s: %w", t.name, err)
	}
	return nil
}
