package groups

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"

	"freshet/internal/storage/engine"
)

// The assignors of the consumer protocol.
const (
	// assignorUniform gives every member the same number of partitions, as far as the subscriptions
	// allow, and moves as few partitions as possible.
	assignorUniform = "uniform"
	// assignorRange gives consecutive partitions of each topic to the members in the order of their
	// instance ids, then ids.
	assignorRange = "range"
)

// assign computes the target assignments for an epoch.
func (cs *consumers) assign(epoch int32, assignor string, counts map[engine.TopicID]int32) {
	members := cs.inOrder()
	var targets map[string][]Partition
	switch {
	case assignor == assignorRange:
		targets = assignRange(members, counts)
	case sameSubscriptions(members):
		targets = assignEqually(members, counts)
	default:
		targets = assignByLoad(members, counts)
	}
	for _, m := range members {
		target := targets[m.id]
		slices.SortFunc(target, Partition.compare)
		if !slices.Equal(target, m.target) {
			next := *m
			next.target = target
			cs.put(&next)
		}
	}
	cs.assignmentEpoch, cs.assignor, cs.partitionCounts = epoch, assignor, counts
	cs.markChanged("")
}

// sameSubscriptions reports whether all members subscribe to the same topics.
func sameSubscriptions(members []*consumer) bool {
	return !slices.ContainsFunc(members, func(m *consumer) bool { return !slices.Equal(m.topics, members[0].topics) })
}

func (m *consumer) subscribesTo(topic engine.TopicID) bool {
	_, ok := slices.BinarySearch(m.topics, topic)
	return ok
}

// assignRange gives each subscriber of a topic a range of its partitions. If the partitions cannot
// be divided equally, the first subscribers get one more.
func assignRange(members []*consumer, counts map[engine.TopicID]int32) map[string][]Partition {
	ordered := slices.Clone(members)
	slices.SortFunc(ordered, func(a, b *consumer) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.id, b.id))
	})
	targets := make(map[string][]Partition)
	for _, topic := range slices.Sorted(maps.Keys(counts)) {
		subscribers := slices.DeleteFunc(slices.Clone(ordered),
			func(m *consumer) bool { return !m.subscribesTo(topic) })
		next := int32(0)
		for i, m := range subscribers {
			rest := int32(len(subscribers) - i)              //nolint:gosec // at most maxMembers
			size := (counts[topic] - next + rest - 1) / rest // rounded up, so that larger shares come first
			for range size {
				targets[m.id] = append(targets[m.id], Partition{topic, next})
				next++
			}
		}
	}
	return targets
}

// assignEqually divides all partitions among members with the same subscription. A member keeps its
// partitions up to its share.
func assignEqually(members []*consumer, counts map[engine.TopicID]int32) map[string][]Partition {
	if len(members) == 0 {
		return nil
	}
	total := 0
	for _, n := range counts {
		total += int(n)
	}
	share, larger := total/len(members), total%len(members)
	targets := make(map[string][]Partition, len(members))
	taken := make(map[Partition]bool, total)
	for _, m := range members {
		kept := m.keepablePartitions(counts)
		switch {
		case len(kept) > share && larger > 0:
			larger--
			kept = kept[:share+1]
		case len(kept) > share:
			kept = kept[:share]
		}
		for _, p := range kept {
			taken[p] = true
		}
		targets[m.id] = kept
	}
	var rest []Partition
	eachPartition(counts, func(p Partition) {
		if !taken[p] {
			rest = append(rest, p)
		}
	})
	for _, m := range members {
		n := max(share-len(targets[m.id]), 0)
		targets[m.id] = append(targets[m.id], rest[:n]...)
		rest = rest[n:]
	}
	for _, m := range members {
		if len(rest) > 0 && len(targets[m.id]) == share {
			targets[m.id] = append(targets[m.id], rest[0])
			rest = rest[1:]
		}
	}
	return targets
}

// keepablePartitions returns the partitions of a member's target that it may keep. The targets of two
// members never overlap.
func (m *consumer) keepablePartitions(counts map[engine.TopicID]int32) []Partition {
	return slices.DeleteFunc(slices.Clone(m.target), func(p Partition) bool {
		return p.Partition >= counts[p.Topic] || !m.subscribesTo(p.Topic)
	})
}

// eachPartition calls visit for all partitions in order.
func eachPartition(counts map[engine.TopicID]int32, visit func(Partition)) {
	for _, topic := range slices.Sorted(maps.Keys(counts)) {
		for i := range counts[topic] {
			visit(Partition{topic, i})
		}
	}
}

// assignByLoad divides partitions among members with different subscriptions: each partition goes
// to the subscriber with the fewest partitions. A member keeps a partition unless another
// subscriber has at least two fewer.
func assignByLoad(members []*consumer, counts map[engine.TopicID]int32) map[string][]Partition {
	loads := make(map[string]*load, len(members))
	holders := make(map[Partition]*load)
	subscribers := make(map[engine.TopicID][]*load)
	for _, m := range members {
		l := &load{id: m.id}
		loads[m.id] = l
		for _, p := range m.keepablePartitions(counts) {
			holders[p] = l
			l.n++
		}
		for _, topic := range m.topics {
			subscribers[topic] = append(subscribers[topic], l)
		}
	}
	// Topics with few subscribers come first; the later topics balance the loads.
	topics := slices.SortedFunc(maps.Keys(counts), func(a, b engine.TopicID) int {
		return cmp.Or(cmp.Compare(len(subscribers[a]), len(subscribers[b])), cmp.Compare(a, b))
	})
	for range 2 { // the second round corrects the loads of the first
		for _, topic := range topics {
			balanceTopic(subscribers[topic], topic, counts[topic], holders)
		}
	}
	targets := make(map[string][]Partition, len(members))
	for p, l := range holders {
		targets[l.id] = append(targets[l.id], p)
	}
	return targets
}

// balanceTopic assigns the partitions of one topic to its subscribers.
func balanceTopic(subscribers []*load, topic engine.TopicID, count int32, holders map[Partition]*load) {
	h := loadHeap(slices.Clone(subscribers))
	for i, l := range h {
		l.at = i
	}
	heap.Init(&h)
	for i := range count {
		p := Partition{topic, i}
		holder := holders[p]
		if holder != nil && holder.n < h[0].n+2 {
			continue
		}
		least := h[0]
		holders[p] = least
		least.n++
		heap.Fix(&h, least.at)
		if holder != nil {
			holder.n--
			heap.Fix(&h, holder.at)
		}
	}
}

// load is the number of partitions that a member has so far.
type load struct {
	id string
	n  int
	at int // index in the heap of the current topic
}

type loadHeap []*load

func (h loadHeap) Len() int { return len(h) }
func (h loadHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].n, h[j].n), cmp.Compare(h[i].id, h[j].id)) < 0
}

func (h loadHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface. The size of a loadHeap never changes.
func (h *loadHeap) Push(any) {}

// Pop implements heap.Interface. The size of a loadHeap never changes.
func (h *loadHeap) Pop() any { return nil }
