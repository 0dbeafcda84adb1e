package groups

import "time"

// prepareRebalanceLocked begins a rebalance: the group waits for its members to join again.
func (g *group) prepareRebalanceLocked(now time.Time) {
	if g.phase == completing {
		for _, m := range g.members {
			m.respondSync(SyncResult{}, ErrRebalancing)
		}
	}
	g.inInitialDelay = g.phase == empty
	g.phase = preparing
	if g.inInitialDelay {
		g.initialDelayEnd = now.Add(g.rebalanceTimeoutLocked())
		g.deadline = earlier(now.Add(g.shard.c.opts.InitialDelay), g.initialDelayEnd)
		g.memberJoined = false
	} else {
		g.deadline = now.Add(g.rebalanceTimeoutLocked())
	}
	g.resetTimerLocked()
	g.tryCompleteJoinLocked(now)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// rebalanceTimeoutLocked returns the time that members have to join again: the largest rebalance timeout.
func (g *group) rebalanceTimeoutLocked() time.Duration {
	var longest time.Duration
	for _, m := range g.members {
		longest = max(longest, m.rebalanceTimeout)
	}
	return longest
}

// tryCompleteJoinLocked begins the next generation early when all members have joined.
func (g *group) tryCompleteJoinLocked(now time.Time) {
	if g.phase != preparing || g.inInitialDelay || len(g.pending) > 0 {
		return
	}
	for _, m := range g.members {
		if m.pendingJoin == nil {
			return
		}
	}
	g.completeJoinLocked(now)
}

// onJoinTimeoutLocked handles the end of the join phase. It removes the members that have not joined,
// except static members, which stay until their session ends.
func (g *group) onJoinTimeoutLocked(now time.Time) {
	if g.inInitialDelay && g.memberJoined && now.Before(g.initialDelayEnd) {
		g.memberJoined = false
		g.deadline = earlier(now.Add(g.shard.c.opts.InitialDelay), g.initialDelayEnd)
		return
	}
	g.inInitialDelay = false
	waiting := false
	for _, m := range g.inOrderLocked() {
		if m.pendingJoin == nil && m.instance == "" {
			g.removeLocked(m, ErrUnknownMember)
		}
		waiting = waiting || m.pendingJoin != nil
	}
	g.clearPendingLocked()
	if !waiting && len(g.members) > 0 { // only absent static members: wait until one joins or expires
		g.deadline = now.Add(max(g.rebalanceTimeoutLocked(), time.Second))
		return
	}
	g.completeJoinLocked(now)
}

// completeJoinLocked begins the next generation with the members that have joined.
func (g *group) completeJoinLocked(now time.Time) {
	g.number++
	g.inInitialDelay = false
	if len(g.members) == 0 {
		g.becomeEmptyLocked()
		return
	}
	if leader := g.members[g.leader]; leader == nil || leader.pendingJoin == nil {
		for _, m := range g.inOrderLocked() {
			if m.pendingJoin != nil {
				g.leader = m.id
				break
			}
		}
	}
	g.protocol = g.chooseProtocolLocked()
	g.phase = completing
	g.storing = false
	g.deadline = now.Add(g.rebalanceTimeoutLocked())
	g.chargeAssignmentsLocked("", 0)
	for _, m := range g.members {
		m.synced, m.assignment, m.assigned = false, nil, nil
		m.respondJoin(g.resultLocked(m), nil)
	}
	g.resetTimerLocked()
}

// becomeEmptyLocked makes the group empty.
func (g *group) becomeEmptyLocked() {
	g.phase, g.leader, g.protocol = empty, "", ""
	g.chargeAssignmentsLocked("", 0)
	g.storeEmpty = true
}

// chooseProtocolLocked returns the protocol that most members prefer among those that all members support.
func (g *group) chooseProtocolLocked() string {
	votes := make(map[string]int)
	for _, m := range g.members {
		for _, p := range m.protocols {
			if g.protocolSupport[p.Name] == len(g.members) {
				votes[p.Name]++
				break
			}
		}
	}
	best := ""
	for name, n := range votes {
		if best == "" || n > votes[best] || n == votes[best] && name < best {
			best = name
		}
	}
	return best
}

// onMembersRemovedLocked starts a rebalance after members were removed.
func (g *group) onMembersRemovedLocked(now time.Time) {
	switch g.phase {
	case stable, completing:
		if len(g.members) == 0 {
			g.number++
			g.becomeEmptyLocked()
			return
		}
		g.prepareRebalanceLocked(now)
	case preparing:
		if len(g.members) == 0 && len(g.pending) == 0 {
			g.completeJoinLocked(now)
			return
		}
		g.tryCompleteJoinLocked(now)
	case empty:
	}
}

// cancelJoin records that a caller no longer waits. Its member remains until its session ends.
func (g *group) cancelJoin(m *member, w *waiter[JoinResult]) {
	g.mu.Lock()
	if m.pendingJoin == w {
		m.pendingJoin = nil
		g.stoppedWaitingLocked(m)
	}
	g.unlock()
}

// cancelSync is cancelJoin for a caller that waited for its assignment.
func (g *group) cancelSync(m *member, w *waiter[SyncResult]) {
	g.mu.Lock()
	if m.pendingSync == w {
		m.pendingSync = nil
		g.stoppedWaitingLocked(m)
	}
	g.unlock()
}

// stoppedWaitingLocked restarts the session timeout of a member that no longer waits.
func (g *group) stoppedWaitingLocked(m *member) {
	m.renewSession()
	g.resetTimerLocked()
}
