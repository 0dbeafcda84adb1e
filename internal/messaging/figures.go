package messaging

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"freshet/internal/engine"
	"freshet/internal/names"
)

// Bounds of what Figures tells apart.
const (
	maxNamespaceFigures = 2_000
	maxTopicFigures     = 10_000
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

func (h *Holdings) add(f engine.Figures) {
	h.Stored += f.Stored
	h.Backlog += f.Backlog
	h.Leased += f.Leased
	if f.Oldest != 0 && (h.Oldest == 0 || f.Oldest < h.Oldest) {
		h.Oldest = f.Oldest
	}
}

// NamespaceFigures are the figures of one namespace. The zero Name stands for
// all namespaces past the first few thousand that were used.
type NamespaceFigures struct {
	Name names.Namespace
	Counts
	Holdings
}

// TopicFigures are the figures of one topic.
type TopicFigures struct {
	Name names.Topic
	Counts
	Holdings
}

// Figures are the figures of the cluster.
type Figures struct {
	Tenants, Namespaces, Topics int
	Waiting                     int64              // consume calls and readers that wait for a message
	ByNamespace                 []NamespaceFigures // of those that were used or store something
	ByTopic                     []TopicFigures     // likewise; only when asked for
	LeftOut                     int                // topics that there was no room for in ByTopic
}

// Figures returns the figures of the cluster, and of single topics when byTopic
// says so. Its cost grows with the topics in use, never with those that only
// exist.
func (b *Broker) Figures(ctx context.Context, byTopic bool) (Figures, error) {
	c := b.catalogue.View()
	out := Figures{Tenants: c.tenants.Len(), Namespaces: c.namespaces.Len(), Topics: c.byID.Len(), Waiting: b.waiting.Load()}
	holdings := map[*namespaceMeter]*Holdings{}
	topics := map[engine.TopicID]*TopicFigures{}
	err := b.engine.Figures(ctx, func(f engine.Figures) {
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
			topics[f.Topic] = &TopicFigures{Name: t.name}
			topics[f.Topic].add(f)
		}
	})
	if err != nil {
		return out, err
	}
	b.spaces.each(c, func(name names.Namespace, space *namespaceMeter) {
		f := NamespaceFigures{Name: name, Counts: space.counts()}
		if h := holdings[space]; h != nil {
			f.Holdings = *h
		}
		if f == (NamespaceFigures{}) {
			return // nothing is past the bound
		}
		out.ByNamespace = append(out.ByNamespace, f)
	})
	if byTopic {
		out.ByTopic, out.LeftOut = b.topicFigures(c, topics)
	}
	return out, nil
}

// topicFigures adds the counts of the topics that were used. When there are too
// many the oldest topics stay, so that it is always the same ones.
func (b *Broker) topicFigures(c *catalogue, topics map[engine.TopicID]*TopicFigures) (list []TopicFigures, leftOut int) {
	b.live.Range(func(key, value any) bool {
		id, live := key.(engine.TopicID), value.(*liveTopic)
		f := topics[id]
		if f == nil {
			t, ok := c.byID.Get(id)
			if !ok {
				return true
			}
			f = &TopicFigures{Name: t.name}
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
	if len(ids) > maxTopicFigures {
		ids, leftOut = ids[:maxTopicFigures], len(ids)-maxTopicFigures
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
	others namespaceMeter // of namespaces past maxNamespaceFigures
}

// of returns the meter of a namespace.
func (m *namespaceMeters) of(name names.Namespace) *namespaceMeter {
	if known, ok := m.byName.Load(name); ok {
		return known.(*namespaceMeter)
	}
	if m.n.Add(1) > maxNamespaceFigures {
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
