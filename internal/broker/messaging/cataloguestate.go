package messaging

import (
	"github.com/tidwall/btree"

	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// catalogueState is the state of the catalogue's state machine: which tenants, namespaces and topics exist,
// and their policies. A published state never changes: Clone shares all entries with the
// original, and a change replaces an entry instead of modifying it.
type catalogueState struct {
	seeded     bool // public/default was created once; it is not created again after its deletion
	tenants    *btree.Map[string, *Tenant]
	namespaces *btree.BTreeG[*namespace]
	topics     *btree.BTreeG[topicItem]
	byID       *btree.Map[engine.TopicID, *topic]
	groups     *btree.BTreeG[groupItem] // share groups with configurations

	// Totals over all topics.
	partitions  int64 // a topic that is not partitioned counts as one
	schemaBytes int64
}

// Tenant is a tenant of the cluster; it contains namespaces.
type Tenant struct {
	Name            string   `json:"name"`
	AdminRoles      []string `json:"adminRoles,omitempty"`
	AllowedClusters []string `json:"allowedClusters,omitempty"`
}

type namespace struct {
	name     names.Namespace
	policies *Policies
	topics   int
	// pending is the journal position of a policy change that may not have reached the engine for
	// every topic; 0 when the engine has it.
	pending uint64
}

type topic struct {
	id         engine.TopicID // derived from the journal position of its first record
	name       names.Topic
	created    int64 // epoch milliseconds
	partitions int32 // 0 when the topic is not partitioned
	terminated bool
	policies   *Policies // never nil
	schemas    *schemaHistory
	pending    uint64 // see namespace.pending

	// Derived from the properties: whether keys and values must start with the id of a registered
	// schema.
	prefixedKey   bool
	prefixedValue bool
	keySubjects   subjectStrategy // which subjects may have these ids
	valueSubjects subjectStrategy
}

// topicItem is a topic keyed by its name. It is a value so that a lookup does not allocate a topic.
type topicItem struct {
	name  names.Topic
	topic *topic
}

func newCatalogueState() *catalogueState {
	opts := btree.Options{NoLocks: true}
	return &catalogueState{
		tenants: &btree.Map[string, *Tenant]{},
		namespaces: btree.NewBTreeGOptions(func(a, b *namespace) bool {
			return a.name.Compare(b.name) < 0
		}, opts),
		topics: btree.NewBTreeGOptions(func(a, b topicItem) bool {
			return a.name.Compare(b.name) < 0
		}, opts),
		byID:   &btree.Map[engine.TopicID, *topic]{},
		groups: newGroupTree(opts),
	}
}

// Clone implements statemachine.State.
func (c *catalogueState) Clone() *catalogueState {
	return &catalogueState{
		seeded:     c.seeded,
		tenants:    c.tenants.Copy(),
		namespaces: c.namespaces.Copy(),
		topics:     c.topics.Copy(),
		byID:       c.byID.Copy(),
		groups:     c.groups.Copy(),

		partitions:  c.partitions,
		schemaBytes: c.schemaBytes,
	}
}

func (c *catalogueState) namespace(name names.Namespace) (*namespace, bool) {
	return c.namespaces.Get(&namespace{name: name})
}

func (c *catalogueState) topic(name names.Topic) (*topic, bool) {
	item, ok := c.topics.Get(topicItem{name: name})
	return item.topic, ok
}

// namespacesOf calls visit for the namespaces of a tenant in order.
func (c *catalogueState) namespacesOf(tenant string, visit func(*namespace) bool) {
	from := &namespace{name: names.Namespace{Tenant: tenant}}
	c.namespaces.Ascend(from, func(n *namespace) bool {
		return n.name.Tenant == tenant && visit(n)
	})
}

// topicsOf calls visit for the topics of a namespace in order.
func (c *catalogueState) topicsOf(ns names.Namespace, visit func(*topic) bool) {
	from := topicItem{name: names.Topic{Namespace: ns}}
	c.topics.Ascend(from, func(item topicItem) bool {
		return item.name.Namespace == ns && visit(item.topic)
	})
}

// setTopic inserts t, or replaces the entry of the same id.
func (c *catalogueState) setTopic(t *topic) {
	t.prefixedKey = isTrue(t.policies.Properties[PropertyKeyValidation])
	t.prefixedValue = isTrue(t.policies.Properties[PropertyValueValidation])
	t.keySubjects, _ = parseStrategy(t.policies.Properties[PropertyKeySubjects])
	t.valueSubjects, _ = parseStrategy(t.policies.Properties[PropertyValueSubjects])
	c.topics.Set(topicItem{name: t.name, topic: t})
	if old, ok := c.byID.Get(t.id); ok {
		c.countTopic(old, -1)
	}
	c.byID.Set(t.id, t)
	c.countTopic(t, 1)
}

// countTopic adds a topic to the totals times times (1 or -1).
func (c *catalogueState) countTopic(t *topic, times int64) {
	c.partitions += times * partitionsOf(t.partitions)
	c.schemaBytes += times * t.schemas.size()
}

// partitionsOf returns the number of partitions that a topic counts for quotas.
func partitionsOf(partitions int32) int64 { return max(1, int64(partitions)) }

// countTopics adds by to the number of topics of a namespace.
func (c *catalogueState) countTopics(name names.Namespace, by int) {
	if old, ok := c.namespace(name); ok {
		ns := *old
		ns.topics += by
		c.namespaces.Set(&ns)
	}
}

// rules returns the effective policies of a topic.
func (c *catalogueState) rules(t *topic, limits *Limits) rules {
	var policies *Policies
	if ns, ok := c.namespace(t.name.Namespace); ok {
		policies = ns.policies
	}
	return limits.rules(policies, t.policies)
}
