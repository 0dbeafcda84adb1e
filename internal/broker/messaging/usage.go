package messaging

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"freshet/internal/base/names"
	"freshet/internal/storage/engine"
)

// Limits of the entries that Usage lists.
const (
	maxNamespaceUsage = 2_000
	maxTopicUsage     = 10_000
)

// Counters are counters since the broker opened.
type Counters struct {
	ProducedMessages, ProducedBytes   int64
	DeliveredMessages, DeliveredBytes int64 // including redeliveries
	Acknowledgements                  int64
	DeadLetters                       int64
	PassedOver                        int64 // by the filters of subscriptions
}

// Gauges are gauges of the current state.
type Gauges struct {
	Stored  int64  // bytes
	Backlog uint64 // unacknowledged messages, summed over the subscriptions
	Leased  uint64
	Oldest  int64 // publish time of the oldest message in a backlog, epoch milliseconds; 0 for none
}

func (h *Gauges) add(f engine.Usage) {
	h.Stored += f.Stored
	h.Backlog += f.Backlog
	h.Leased += f.Leased
	if f.Oldest != 0 && (h.Oldest == 0 || f.Oldest < h.Oldest) {
		h.Oldest = f.Oldest
	}
}

// NamespaceUsage is the usage of one namespace. The zero Name is the sum of all namespaces beyond
// the first maxNamespaceUsage that were used.
type NamespaceUsage struct {
	Name names.Namespace
	Counters
	Gauges
}

// TopicUsage is the usage of one topic.
type TopicUsage struct {
	Name names.Topic
	Counters
	Gauges
}

// Usage is the usage of the cluster.
type Usage struct {
	Tenants, Namespaces, Topics int
	Waiting                     int64            // consume calls and readers that are waiting for messages
	ByNamespace                 []NamespaceUsage // namespaces that were used or store messages
	ByTopic                     []TopicUsage     // topics likewise; only with byTopic
	OmittedTopics               int              // topics beyond the limit of ByTopic
}

// Usage returns the usage of the cluster, and with byTopic of single topics. Its cost grows with
// the topics in use, not with those that merely exist.
func (st *Statistics) Usage(ctx context.Context, byTopic bool) (Usage, error) {
	c := st.catalogue.state.View()
	out := Usage{
		Tenants: c.tenants.Len(), Namespaces: c.namespaces.Len(), Topics: c.byID.Len(),
		Waiting: st.consumer.waiting.Load(),
	}
	holdings := map[*namespaceMeter]*Gauges{}
	topics := map[engine.TopicID]*TopicUsage{}
	err := st.engine.Usage(ctx, func(f engine.Usage) {
		t, ok := c.byID.Get(f.Topic)
		if !ok {
			return // created or deleted concurrently
		}
		space := st.live.namespaceMeters.meterOf(t.name.Namespace)
		if holdings[space] == nil {
			holdings[space] = &Gauges{}
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
	st.live.namespaceMeters.each(c, func(name names.Namespace, space *namespaceMeter) {
		f := NamespaceUsage{Name: name, Counters: space.counters()}
		if h := holdings[space]; h != nil {
			f.Gauges = *h
		}
		if f == (NamespaceUsage{}) {
			return // no namespace is beyond the limit
		}
		out.ByNamespace = append(out.ByNamespace, f)
	})
	if byTopic {
		out.ByTopic, out.OmittedTopics = st.topicUsage(c, topics)
	}
	return out, nil
}

// QuotaUsage returns the numbers that count towards quotas: partitions (a topic without partitions counts
// as one) and the bytes of topic schemas. It reads two fields and is cheap.
func (st *Statistics) QuotaUsage() (partitions, schemaBytes int64) {
	c := st.catalogue.state.View()
	return c.partitions, c.schemaBytes
}

// topicUsage adds the counts of the topics that were used. Beyond maxTopicUsage it lists the topics
// with the lowest ids, so that the selection is stable.
func (st *Statistics) topicUsage(c *catalogueState,
	topics map[engine.TopicID]*TopicUsage,
) (list []TopicUsage, leftOut int) {
	st.live.byID.Range(func(key, value any) bool {
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
		f.Counters = countersOf(&live.in, &live.out, &live.acks, &live.dead, &live.passedOver)
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

// namespaceMeter counts the traffic of the topics of a namespace.
type namespaceMeter struct{ in, out, acks, dead, failed, passedOver meter }

func (m *namespaceMeter) counters() Counters {
	return countersOf(&m.in, &m.out, &m.acks, &m.dead, &m.passedOver)
}

func countersOf(in, out, acks, dead, passedOver *meter) Counters {
	return Counters{
		ProducedMessages: in.messages.Load(), ProducedBytes: in.bytes.Load(),
		DeliveredMessages: out.messages.Load(), DeliveredBytes: out.bytes.Load(),
		Acknowledgements: acks.messages.Load(), DeadLetters: dead.messages.Load(),
		PassedOver: passedOver.messages.Load(),
	}
}

// namespaceMeters holds the meters of the namespaces that were used.
type namespaceMeters struct {
	byName   sync.Map // names.Namespace → *namespaceMeter
	n        atomic.Int64
	overflow namespaceMeter // namespaces beyond maxNamespaceUsage
}

// meterOf returns the meter of a namespace.
func (m *namespaceMeters) meterOf(name names.Namespace) *namespaceMeter {
	if known, ok := m.byName.Load(name); ok {
		return known.(*namespaceMeter)
	}
	if m.n.Add(1) > maxNamespaceUsage {
		m.n.Add(-1)
		return &m.overflow
	}
	known, loaded := m.byName.LoadOrStore(name, &namespaceMeter{})
	if loaded {
		m.n.Add(-1)
	}
	return known.(*namespaceMeter)
}

// each calls visit for every namespace that was used, and removes those that the catalogue no
// longer has. The namespaces beyond the limit come last, together and without a name.
func (m *namespaceMeters) each(c *catalogueState, visit func(names.Namespace, *namespaceMeter)) {
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
	visit(names.Namespace{}, &m.overflow)
}
