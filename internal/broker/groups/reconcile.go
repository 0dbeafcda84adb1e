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
	next := m.reconcile(cs.assignmentEpoch, owned, func(p Partition) bool {
		holder, held := cs.owners[p]
		return !held || holder == m.id
	})
	if next == m {
		return m
	}
	next.revokeBy = time.Time{}
	if next.stage == revoking {
		next.revokeBy = time.Now().Add(next.rebalanceTimeout)
	}
	cs.put(next)
	g.resetTimerLocked()
	return next
}

// reconcile returns the next state of a member, or m itself if the state does not change.
func (m *consumer) reconcile(target int32, owned []Partition, free func(Partition) bool) *consumer {
	epoch := m.epoch
	switch m.stage {
	case reconciled:
		if m.epoch == target {
			return m
		}
	case revoking:
		if ownsAny(owned, m.pendingRevocation) {
			return m
		}
		epoch++
	case unreleased:
	}
	next := *m
	next.assigned, next.pendingRevocation = make(map[Partition]int32), make(map[Partition]int32)
	for p, since := range m.assigned {
		if _, stays := slices.BinarySearchFunc(m.target, p, Partition.compare); stays {
			next.assigned[p] = since
		} else {
			next.pendingRevocation[p] = since
		}
	}
	if len(next.pendingRevocation) > 0 && ownsAny(owned, next.pendingRevocation) {
		next.stage = revoking
	} else {
		epoch = target
		next.stage, next.pendingRevocation = reconciled, nil
		for _, p := range m.target {
			switch _, has := next.assigned[p]; {
			case has:
			case free(p):
				next.assigned[p] = target
			default:
				next.stage = unreleased
			}
		}
	}
	if epoch != m.epoch {
		next.epoch, next.previousEpoch = epoch, m.epoch
	}
	if next.sameStored(m) {
		return m
	}
	return &next
}

// ownsAny reports whether the member may still own one of the partitions that it must revoke.
func ownsAny(owned []Partition, loses map[Partition]int32) bool {
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
