package groups

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SyncRequest requests the member's assignment. The leader's request contains all assignments.
type SyncRequest struct {
	MemberID   string
	InstanceID string
	Generation int32
	Type       string
	Protocol   string
	// NamesProtocol means that the version of the request has Type and Protocol. Without it they are not checked.
	NamesProtocol bool
	Assignments   map[string][]byte
	Caller        Caller
}

// SyncResult is a member's assignment.
type SyncResult struct {
	Type       string
	Protocol   string
	Assignment []byte
	// Assigned is set instead of Assignment in a group with the consumer protocol.
	Assigned *ClassicAssignment
}

// ClassicAssignment is what the coordinator assigns to a classic member.
type ClassicAssignment struct {
	Metadata   []byte      // metadata of the member
	Partitions []Partition // sorted
}

// Sync returns the assignment of a member once the leader has sent it and it is durable.
func (c *Coordinator) Sync(ctx context.Context, key Key, req *SyncRequest) (SyncResult, error) {
	if err := key.validate(); err != nil {
		return SyncResult{}, err
	}
	all := 0
	for _, assignment := range req.Assignments {
		if all += len(assignment); all > maxGroupBytes {
			return SyncResult{}, fmt.Errorf("%w: assignments together have more than %d bytes", ErrTooLarge,
				maxGroupBytes)
		}
		if len(assignment) > maxMemberBytes {
			return SyncResult{}, fmt.Errorf("%w: assignment has %d bytes, at most %d are allowed", ErrTooLarge,
				len(assignment), maxMemberBytes)
		}
	}
	g, m, err := c.lockMember(key, &req.Caller, req.MemberID, req.InstanceID, req.Generation)
	if err != nil {
		return SyncResult{}, err
	}
	if g.consumers != nil {
		defer g.unlock()
		classic, err := g.consumers.classicMember(req.MemberID, req.InstanceID, req.Generation)
		if err != nil {
			return SyncResult{}, err
		}
		return g.syncClassicLocked(classic, req)
	}
	w, result, err := g.syncLocked(m, req)
	g.unlock()
	if w == nil {
		return result, err
	}
	return w.wait(ctx, func() { g.cancelSync(m, w) })
}

// lockMember returns a group with its mutex locked, and a member of the caller in its current generation. The
// member is nil in a group with the consumer protocol.
func (c *Coordinator) lockMember(key Key, caller *Caller, id, instance string, generation int32) (*group, *member,
	error,
) {
	g, err := c.shard(key).lock(key, false)
	if errors.Is(err, ErrNoGroup) {
		return nil, nil, ErrUnknownMember
	}
	if err != nil {
		return nil, nil, err
	}
	err = g.admitLocked(caller, id)
	if err == nil && g.consumers != nil {
		return g, nil, nil
	}
	var m *member
	if err == nil {
		m, err = g.memberLocked(id, instance)
	}
	if err == nil && generation != g.number {
		err = ErrGeneration
	}
	if err != nil {
		g.unlock()
		return nil, nil, err
	}
	return g, m, nil
}

// syncLocked returns a waiter if the caller has to wait, and otherwise the result.
func (g *group) syncLocked(m *member, req *SyncRequest) (*waiter[SyncResult], SyncResult, error) {
	if req.NamesProtocol && (req.Type != g.protocolType || req.Protocol != g.protocol) {
		return nil, SyncResult{}, ErrProtocol
	}
	switch g.phase {
	case preparing:
		return nil, SyncResult{}, ErrRebalancing
	case stable:
		m.renewSession()
		return nil, g.assignmentLocked(m), nil
	case empty:
		return nil, SyncResult{}, ErrUnknownMember
	case completing:
	}
	if m.id == g.leader && !g.storing {
		release, err := g.reserveAssignmentsLocked(m.owner.principal, req.Assignments)
		if err != nil {
			return nil, SyncResult{}, err
		}
		defer release()
	}
	m.synced = true
	m.respondSync(SyncResult{}, ErrRebalancing) // an earlier call still waits
	w := newWaiter[SyncResult](m.id)
	m.pendingSync = w
	if m.id == g.leader && !g.storing {
		g.assignLocked(req.Assignments)
	}
	return w, SyncResult{}, nil
}

func (g *group) assignmentLocked(m *member) SyncResult {
	return SyncResult{Type: g.protocolType, Protocol: g.protocol, Assignment: m.assignment}
}

// assignLocked stores the leader's assignments and makes the group stable. It releases the mutex
// during the write.
func (g *group) assignLocked(assignments map[string][]byte) {
	n := 0
	for _, m := range g.members {
		m.assignment = assignments[m.id]
		n += len(m.assignment)
	}
	g.chargeAssignmentsLocked(g.members[g.leader].owner.principal, n)
	number := g.number
	g.storing = true
	err := g.storeLocked()
	if g.phase != completing || g.number != number {
		return // another rebalance has begun and ended the waiting calls
	}
	g.storing = false
	if err != nil {
		for _, m := range g.members {
			m.respondSync(SyncResult{}, err)
		}
		return // the leader may retry until the deadline
	}
	g.phase = stable
	for _, m := range g.members {
		m.respondSync(g.assignmentLocked(m), nil)
	}
}

// onSyncTimeoutLocked removes the members that did not send SyncGroup before the deadline.
func (g *group) onSyncTimeoutLocked(now time.Time) {
	for _, m := range g.inOrderLocked() {
		if !m.synced {
			g.removeLocked(m, ErrUnknownMember)
		}
	}
	g.onMembersRemovedLocked(now)
}
