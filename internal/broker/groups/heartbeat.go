package groups

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"freshet/internal/storage/engine"
)

// heartbeatLocked handles a heartbeat of the consumer protocol: the member joins or is known, its
// subscription may change, targets are computed if the group's epoch has increased, and the member
// moves one step towards its target. A rejected request changes nothing.
func (g *group) heartbeatLocked(req *ConsumerRequest, change *subscription, found *resolution) (ConsumerResult, error) {
	before, replaced, err := g.consumers.findMember(req)
	if err != nil {
		return ConsumerResult{}, err
	}
	return g.applyHeartbeatLocked(req, change, found, before, replaced)
}

// applyHeartbeatLocked is heartbeatLocked for a member that is already looked up.
func (g *group) applyHeartbeatLocked(req *ConsumerRequest, change *subscription, found *resolution,
	before, replaced *consumer,
) (ConsumerResult, error) {
	cs := g.consumers
	m := cs.memberState(req, before, replaced)
	m.applyRequest(req, change, found)
	isNew := before == nil && replaced == nil
	bump := isNew || before != nil && !slices.Equal(before.topics, m.topics) || replaced != nil &&
		!slices.Equal(replaced.topics, m.topics)

	release, err := g.checkConsumerMemoryLocked(m, before, replaced)
	if err != nil {
		return ConsumerResult{}, err
	}
	defer release()
	assignor := cs.chooseAssignor(m, replaced)
	counts := cs.partitionCounts
	if revision := req.Topics.Revision(); bump || revision != cs.revision || g.number > cs.assignmentEpoch {
		if counts, err = g.countPartitionsLocked(req.Topics, m, replaced, bump); err != nil {
			return ConsumerResult{}, err
		}
		cs.revision = revision
	}
	if bump || assignor != cs.assignor || !maps.Equal(counts, cs.partitionCounts) {
		g.number++
		cs.markChanged("")
	}
	if replaced != nil {
		cs.remove(replaced)
	}
	if before == nil || !before.sameStored(m) {
		cs.put(m)
	} else {
		before.revision, before.resolved = m.revision, m.resolved
	}
	if g.number > cs.assignmentEpoch {
		cs.assign(g.number, assignor, counts)
	}
	m = g.reconcileLocked(cs.members[m.id], req.Owned)
	m.expires = time.Now().Add(m.sessionTimeout())

	result := ConsumerResult{MemberID: m.id, Epoch: m.epoch, HeartbeatInterval: g.shard.c.opts.HeartbeatInterval}
	full := req.Epoch == epochJoin || req.RebalanceTimeout >= 0 && change != nil && req.Owned != nil
	if full || before == nil || !maps.Equal(before.assigned, m.assigned) {
		result.HasAssignment, result.Assignment = true, sortedPartitions(m.assigned)
	}
	return result, nil
}

// checkConsumerMemoryLocked returns ErrGroupFull when a member that is new or grows would exceed a memory limit.
// Otherwise it reserves the bytes until release is called.
func (g *group) checkConsumerMemoryLocked(m, before, replaced *consumer) (release func(), err error) {
	more, counted := m.size(), m.bytes()
	for _, old := range []*consumer{before, replaced} {
		if old != nil {
			more, counted = more-old.size(), counted-old.bytes()
		}
	}
	if more > 0 && (g.consumers.bytes+more > maxGroupBytes ||
		g.shard.c.memberBytes.Load()+int64(more) > maxClusterBytes) {
		return nil, ErrGroupFull
	}
	return g.reserveMemberLocked(m.owner.principal, counted)
}

// findMember returns the member of a request, or else the member with the same instance id that it
// replaces. It returns neither for a new member.
func (cs *consumers) findMember(req *ConsumerRequest) (m, replaced *consumer, err error) {
	m = cs.members[req.MemberID]
	if req.InstanceID != "" {
		current := cs.members[cs.static[req.InstanceID]]
		switch {
		case current == nil && req.Epoch != epochJoin:
			return nil, nil, ErrUnknownMember
		case current != nil && current.id != req.MemberID && req.Epoch != epochJoin:
			return nil, nil, ErrFencedInstance
		case current != nil && current.id != req.MemberID &&
			(current.isInUse() || !current.owner.belongsTo(&req.Caller)):
			return nil, nil, ErrUnreleasedInstance
		case current != nil && current.id != req.MemberID:
			return nil, current, nil
		}
	}
	switch {
	case m == nil && req.Epoch != epochJoin:
		return nil, nil, ErrUnknownMember
	case m == nil && len(cs.members) >= maxMembers:
		return nil, nil, fmt.Errorf("%w: %d", ErrGroupFull, maxMembers)
	case m == nil || req.Epoch == epochJoin:
		return m, nil, nil
	}
	return m, nil, m.checkEpoch(req)
}

// checkEpoch fences a member whose epoch is not the current one. The previous epoch is accepted
// from a client that may not have received the last response and owns no partition outside of its
// assignment.
func (m *consumer) checkEpoch(req *ConsumerRequest) error {
	if req.Epoch == m.epoch {
		return nil
	}
	if req.Epoch == m.previousEpoch && req.Epoch < m.epoch && req.Owned != nil {
		if !slices.ContainsFunc(req.Owned, func(p Partition) bool { _, ok := m.assigned[p]; return !ok }) {
			return nil
		}
	}
	return fmt.Errorf("%w: request has epoch %d, member has %d", ErrFencedEpoch, req.Epoch, m.epoch)
}

// memberState returns the state of the member before the request is applied. A member that joins owns no
// partitions even if it is known; a replacement of a static member inherits its assignment.
func (cs *consumers) memberState(req *ConsumerRequest, before, replaced *consumer) *consumer {
	m := &consumer{id: req.MemberID}
	switch {
	case replaced != nil:
		*m = *replaced
		m.id, m.epoch, m.previousEpoch, m.stage, m.pendingRevocation = req.MemberID, 0, 0, reconciled, nil
	case before != nil:
		*m = *before
		if req.Epoch == epochJoin {
			m.epoch, m.previousEpoch, m.stage, m.assigned, m.pendingRevocation = 0, 0, reconciled, nil, nil
		}
	}
	m.expires, m.revokeBy = time.Now().Add(consumerSessionTimeout), time.Time{}
	if before != nil && m.stage == revoking {
		m.revokeBy = before.revokeBy
	}
	return m
}

// applyRequest copies the member's description from the request.
func (m *consumer) applyRequest(req *ConsumerRequest, change *subscription, found *resolution) {
	m.client, m.host, m.classic = req.ClientID, req.ClientHost, req.classic
	m.instance = cmp.Or(req.InstanceID, m.instance)
	m.rack = cmp.Or(req.Rack, m.rack)
	if req.RebalanceTimeout >= 0 {
		m.rebalanceTimeout = req.RebalanceTimeout
	}
	m.assignor = cmp.Or(req.Assignor, m.assignor)
	if change != nil {
		m.subscription = req.merge(&m.subscription, change)
	}
	if found != nil {
		m.topics, m.revision, m.resolved = found.topics, found.revision, found.resolvedAt
		m.owner = owner{principal: m.owner.principal, topics: found.reads}
	}
	m.owner.principal = cmp.Or(req.Caller.Principal, m.owner.principal)
}

// sameStored reports whether the stored parts of two states of a member are equal.
func (m *consumer) sameStored(other *consumer) bool {
	return m.id == other.id && m.instance == other.instance && m.client == other.client && m.host == other.host &&
		m.rack == other.rack && m.rebalanceTimeout == other.rebalanceTimeout && m.assignor == other.assignor &&
		m.subscription.equal(&other.subscription) &&
		slices.Equal(m.topics, other.topics) && m.epoch == other.epoch && m.previousEpoch == other.previousEpoch &&
		m.stage == other.stage &&
		maps.Equal(m.assigned, other.assigned) && maps.Equal(m.pendingRevocation, other.pendingRevocation) &&
		slices.Equal(m.target, other.target) && m.classic.equal(other.classic) && m.owner.equal(&other.owner)
}

// chooseAssignor returns the assignor that most members prefer, counting m instead of its former state and of
// the member that it replaces.
func (cs *consumers) chooseAssignor(m, replaced *consumer) string {
	votes := map[string]int{m.assignor: 1}
	for _, other := range cs.members {
		if other.id != m.id && other != replaced {
			votes[other.assignor]++
		}
	}
	if votes[assignorRange] > votes[assignorUniform] {
		return assignorRange
	}
	return assignorUniform
}

// countPartitionsLocked returns the number of partitions of every topic that a member subscribes to. Over the
// limit it rejects a member that subscribes to more; when existing topics have grown past the limit
// it returns the previous counts.
func (g *group) countPartitionsLocked(topics Topics, m, replaced *consumer,
	changes bool,
) (map[engine.TopicID]int32, error) {
	cs := g.consumers
	counts := make(map[engine.TopicID]int32)
	total := int64(0)
	add := func(ids []engine.TopicID) {
		for _, id := range ids {
			if _, known := counts[id]; known {
				continue
			}
			if n := topics.Partitions(id); n > 0 {
				counts[id] = n
				total += int64(n)
			}
		}
	}
	add(m.topics)
	for _, other := range cs.members {
		if other.id != m.id && other != replaced {
			add(other.topics)
		}
	}
	switch {
	case total <= maxGroupPartitions:
		return counts, nil
	case changes:
		return nil, fmt.Errorf("%w: %d, at most %d are allowed", ErrTooManyPartitions, total, maxGroupPartitions)
	}
	g.shard.c.log.LogAttrs(g.shard.c.ctx, slog.LevelWarn,
		"topics of a consumer group have grown past the partition limit; the new partitions are not assigned",
		slog.String("group", g.key.Group), slog.String("tenant", g.key.Tenant), slog.Int64("partitions", total),
		slog.Int("limit", maxGroupPartitions))
	return cs.partitionCounts, nil
}

// leaveConsumerLocked removes a member, or marks a static member as temporarily away.
func (g *group) leaveConsumerLocked(req *ConsumerRequest) (ConsumerResult, error) {
	cs := g.consumers
	m := cs.members[req.MemberID]
	if req.InstanceID != "" {
		switch current, ok := cs.static[req.InstanceID]; {
		case !ok:
			return ConsumerResult{}, ErrUnknownMember
		case current != req.MemberID:
			return ConsumerResult{}, ErrFencedInstance
		}
	}
	if m == nil || !m.owner.belongsTo(&req.Caller) {
		return ConsumerResult{}, ErrUnknownMember
	}
	if req.Epoch == epochLeaveStatic {
		away := *m
		away.epoch, away.stage, away.pendingRevocation, away.revokeBy = epochLeaveStatic, reconciled, nil, time.Time{}
		away.expires = time.Now().Add(consumerSessionTimeout)
		cs.put(&away)
	} else {
		cs.remove(m)
		g.number++
	}
	return ConsumerResult{MemberID: req.MemberID, Epoch: req.Epoch}, nil
}
