package messaging

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// Bounds of what Usage tells apart.
const (
	maxNamespaceUsage = 2_000
	maxTopicUsage     = 10_000
)

// Counts is what went through since the broker opened.
type Counts struct {
	ProducedMessages, ProducedBytes   int64
	DeliveredMessages, DeliveredBytes int64 // by subscriptions, every delivery counted
	Acknowledgements                  int64
	DeadLetters                       int64
}

// Holdings is what there is now.
type Holdings struct {
	Stored  int64  // bytes
	Backlog uint64 // messages not acknowledged, added up over the subscriptions
	Leased  uint64
	Oldest  int64 // publish time of the oldest message in a backlog, epoch milliseconds; 0 for none
}

func (h *Holdings) add(f engine.Usage) {
	h.Stored += f.Stored
	h.Backlog += f.Backlog
	h.Leased += f.Leased
	if f.Oldest != 0 && (h.Oldest == 0 || f.Oldest < h.Oldest) {
		h.Oldest = f.Oldest
	}
}

// NamespaceUsage is the usage of one namespace. The zero Name stands for
// all namespaces past the first few thousand that were used.
type NamespaceUsage struct {
	Name names.Namespace
	Counts
	Holdings
}

// TopicUsage is the usage of one topic.
type TopicUsage struct {
	Name names.Topic
	Counts
	Holdings
}

// Usage is the usage of the cluster.
type Usage struct {
	Tenants, Namespaces, Topics int
	Waiting                     int64            // consume calls and readers that wait for a message
	ByNamespace                 []NamespaceUsage // of those that were used or store something
	ByTopic                     []TopicUsage     // likewise; only when asked for
	LeftOut                     int              // topics that there was no room for in ByTopic
}

// Usage returns the usage of the cluster, and of single topics when byTopic
// says so. Its cost grows with the topics in use, never with those that only
// exist.
func (b *Broker) Usage(ctx context.Context, byTopic bool) (Usage, error) {
	c := b.catalogue.View()
	out := Usage{
		Tenants: c.tenants.Len(), Namespaces: c.namespaces.Len(), Topics: c.byID.Len(),
		Waiting: b.waiting.Load(),
	}
	holdings := map[*namespaceMeter]*Holdings{}
	topics := map[engine.TopicID]*TopicUsage{}
	err := b.engine.Usage(ctx, func(f engine.Usage) {
		t, ok := c.byID.Get(f.Topic)
		if !ok {
			return // created or dropped a moment ago
		}
		space := b.spaces.of(t.name.Namespace)
		if holdings[space] == nil {
			holdings[space] = &Holdings{}
		}
		holdings[space].add(f)
		if byTopic {
			topics[f.Topic] = &TopicUsage{Name: t.name}
			topics[f.Topic].add(f)
		}
	})
	if err != nil {
		return out, err
	}
	b.spaces.each(c, func(name names.Namespace, space *namespaceMeter) {
		f := NamespaceUsage{Name: name, Counts: space.counts()}
		if h := holdings[space]; h != nil {
			f.Holdings = *h
		}
		if f == (NamespaceUsage{}) {
			return // nothing is past the bound
		}
		out.ByNamespace = append(out.ByNamespace, f)
	})
	if byTopic {
		out.ByTopic, out.LeftOut = b.topicUsage(c, topics)
	}
	return out, nil
}

// Used returns what the catalogue counts for quotas: partitions, a topic without
// any being one, and the bytes of topic schemas. It costs next to nothing.
func (b *Broker) Used() (partitions, schemaBytes int64) {
	c := b.catalogue.View()
	return c.partitions, c.schemaBytes
}

// topicUsage adds the counts of the topics that were used. When there are too
// many the oldest topics stay, so that it is always the same ones.
func (b *Broker) topicUsage(c *catalogue, topics map[engine.TopicID]*TopicUsage) (list []TopicUsage, leftOut int) {
	b.live.Range(func(key, value any) bool {
		id, live := key.(engine.TopicID), value.(*liveTopic)
		f := topics[id]
		if f == nil {
			t, ok := c.byID.Get(id)
			if !ok {
				return true
			}
			f = &TopicUsage{Name: t.name}
			topics[id] = f
		}
		f.Counts = countsOf(&live.in, &live.out, &live.acks, &live.dead)
		return true
	})
	ids := make([]engine.TopicID, 0, len(topics))
	for id := range topics {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) > maxTopicUsage {
		ids, leftOut = ids[:maxTopicUsage], len(ids)-maxTopicUsage
	}
	for _, id := range ids {
		list = append(list, *topics[id])
	}
	return list, leftOut
}

// namespaceMeter counts what goes through the topics of a namespace.
type namespaceMeter struct{ in, out, acks, dead meter }

func (m *namespaceMeter) counts() Counts { return countsOf(&m.in, &m.out, &m.acks, &m.dead) }

func countsOf(in, out, acks, dead *meter) Counts {
	return Counts{
		ProducedMessages: in.messages.Load(), ProducedBytes: in.bytes.Load(),
		DeliveredMessages: out.messages.Load(), DeliveredBytes: out.bytes.Load(),
		Acknowledgements: acks.messages.Load(), DeadLetters: dead.messages.Load(),
	}
}

// namespaceMeters are the meters of the namespaces that were used.
type namespaceMeters struct {
	byName sync.Map // names.Namespace → *namespaceMeter
	n      atomic.Int64
	others namespaceMeter // of namespaces past maxNamespaceUsage
}

// of returns the meter of a namespace.
func (m *namespaceMeters) of(name names.Namespace) *namespaceMeter {
	if known, ok := m.byName.Load(name); ok {
		return known.(*namespaceMeter)
	}
	if m.n.Add(1) > maxNamespaceUsage {
		m.n.Add(-1)
		return &m.others
	}
	known, loaded := m.byName.LoadOrStore(name, &namespaceMeter{})
	if loaded {
		m.n.Add(-1)
	}
	return known.(*namespaceMeter)
}

// each calls visit for every namespace that was used, and forgets those that the
// catalogue does not have any more. What was past the bound comes last, with no
// name.
func (m *namespaceMeters) each(c *catalogue, visit func(names.Namespace, *namespaceMeter)) {
	m.byName.Range(func(key, value any) bool {
		name := key.(names.Namespace)
		if _, ok := c.namespace(name); !ok {
			if m.byName.CompareAndDelete(name, value) {
				m.n.Add(-1)
			}
			return true
		}
		visit(name, value.(*namespaceMeter))
		return true
	})
	visit(names.Namespace{}, &m.others)
}

// newLive makes the memory of a topic, whose meters count for its namespace too.
func (b *Broker) newLive(id engine.TopicID) *liveTopic {
	l := &liveTopic{}
	if t, ok := b.catalogue.View().byID.Get(id); ok {
		space := b.spaces.of(t.name.Namespace)
		l.in.sum, l.out.sum, l.acks.sum, l.dead.sum = &space.in, &space.out, &space.acks, &space.dead
	}
	return l
}
