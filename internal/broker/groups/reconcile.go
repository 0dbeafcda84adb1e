package groups

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// reconcileLocked moves a member one step towards its target. The member must first revoke the
// partitions outside of the target; then it gets the partitions that no other member owns, and the
// epoch of the target.
func (g *group) reconcileLocked(m *consumer, owned []Partition) *consumer {
	cs := g.consumers
	next := m.reconcile(cs.assigned, owned, func(p Partition) bool {
		holder, held := cs.holders[p]
		return !held || holder == m.id
	})
	if next == m {
		return m
	}
	next.revokeBy = time.Time{}
	if next.stage == revoking {
		next.revokeBy = time.Now().Add(next.rebalance)
	}
	cs.put(next)
	g.hurryLocked()
	return next
}

// reconcile returns the next state of a member, or m itself if the state does not change.
func (m *consumer) reconcile(target int32, owned []Partition, free func(Partition) bool) *consumer {
	epoch := m.epoch
	switch m.stage {
	case settled:
		if m.epoch == target {
			return m
		}
	case revoking:
		if keeps(owned, m.loses) {
			return m
		}
		epoch++
	case unreleased:
	}
	next := *m
	next.has, next.loses = make(map[Partition]int32), make(map[Partition]int32)
	for p, since := range m.has {
		if _, stays := slices.BinarySearchFunc(m.target, p, Partition.compare); stays {
			next.has[p] = since
		} else {
			next.loses[p] = since
		}
	}
	if len(next.loses) > 0 && keeps(owned, next.loses) {
		next.stage = revoking
	} else {
		epoch = target
		next.stage, next.loses = settled, nil
		for _, p := range m.target {
			switch _, has := next.has[p]; {
			case has:
			case free(p):
				next.has[p] = target
			default:
				next.stage = unreleased
			}
		}
	}
	if epoch != m.epoch {
		next.epoch, next.previous = epoch, m.epoch
	}
	if next.sameStored(m) {
		return m
	}
	return &next
}

// keeps reports whether the member may still own one of the partitions that it must revoke.
func keeps(owned []Partition, loses map[Partition]int32) bool {
	if owned == nil {
		return true
	}
	return slices.ContainsFunc(owned, func(p Partition) bool { _, ok := loses[p]; return ok })
}

func (p Partition) compare(other Partition) int {
	return cmp.Or(cmp.Compare(p.Topic, other.Topic), cmp.Compare(p.Partition, other.Partition))
}

func sortedPartitions(set map[Partition]int32) []Partition {
	return slices.SortedFunc(maps.Keys(set), Partition.compare)
}
