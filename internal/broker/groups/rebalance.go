package groups

import "time"

// prepareLocked begins a rebalance: the group waits for its members to join again.
func (g *group) prepareLocked(now time.Time) {
	if g.phase == completing {
		for _, m := range g.members {
			m.answerSync(SyncResult{}, ErrRebalancing)
		}
	}
	g.initial = g.phase == empty
	g.phase = preparing
	if g.initial {
		g.initialEnd = now.Add(g.rebalanceLocked())
		g.deadline = earlier(now.Add(g.shard.c.opts.InitialDelay), g.initialEnd)
		g.company = false
	} else {
		g.deadline = now.Add(g.rebalanceLocked())
	}
	g.hurryLocked()
	g.maybeJoinedLocked(now)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// rebalanceLocked returns the time that members have to join again: the largest rebalance timeout.
func (g *group) rebalanceLocked() time.Duration {
	var longest time.Duration
	for _, m := range g.members {
		longest = max(longest, m.rebalance)
	}
	return longest
}

// maybeJoinedLocked begins the next generation early when all members have joined.
func (g *group) maybeJoinedLocked(now time.Time) {
	if g.phase != preparing || g.initial || len(g.pending) > 0 {
		return
	}
	for _, m := range g.members {
		if m.join == nil {
			return
		}
	}
	g.joinedLocked(now)
}

// joinTimeLocked handles the end of the join phase. It removes the members that have not joined,
// except static members, which stay until their session ends.
func (g *group) joinTimeLocked(now time.Time) {
	if g.initial && g.company && now.Before(g.initialEnd) {
		g.company = false
		g.deadline = earlier(now.Add(g.shard.c.opts.InitialDelay), g.initialEnd)
		return
	}
	g.initial = false
	waiting := false
	for _, m := range g.inOrderLocked() {
		if m.join == nil && m.instance == "" {
			g.removeLocked(m, ErrUnknownMember)
		}
		waiting = waiting || m.join != nil
	}
	clear(g.pending)
	if !waiting && len(g.members) > 0 { // only absent static members: wait until one joins or expires
		g.deadline = now.Add(max(g.rebalanceLocked(), time.Second))
		return
	}
	g.joinedLocked(now)
}

// joinedLocked begins the next generation with the members that have joined.
func (g *group) joinedLocked(now time.Time) {
	g.number++
	g.initial = false
	if len(g.members) == 0 {
		g.emptyLocked()
		return
	}
	if leader := g.members[g.leader]; leader == nil || leader.join == nil {
		for _, m := range g.inOrderLocked() {
			if m.join != nil {
				g.leader = m.id
				break
			}
		}
	}
	g.protocol = g.chooseLocked()
	g.phase = completing
	g.storing = false
	g.deadline = now.Add(g.rebalanceLocked())
	for _, m := range g.members {
		m.synced, m.assignment = false, nil
		m.answerJoin(g.resultLocked(m), nil)
	}
	g.hurryLocked()
}

// emptyLocked makes the group empty.
func (g *group) emptyLocked() {
	g.phase, g.leader, g.protocol = empty, "", ""
	g.emptied = true
}

// chooseLocked returns the protocol that most members prefer among those that all members support.
func (g *group) chooseLocked() string {
	votes := make(map[string]int)
	for _, m := range g.members {
		for _, p := range m.protocols {
			if g.support[p.Name] == len(g.members) {
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

// changedLocked starts a rebalance after members were removed.
func (g *group) changedLocked(now time.Time) {
	switch g.phase {
	case stable, completing:
		if len(g.members) == 0 {
			g.number++
			g.emptyLocked()
			return
		}
		g.prepareLocked(now)
	case preparing:
		if len(g.members) == 0 && len(g.pending) == 0 {
			g.joinedLocked(now)
			return
		}
		g.maybeJoinedLocked(now)
	case empty:
	}
}

// leftJoin records that a caller no longer waits. Its member remains until its session ends.
func (g *group) leftJoin(m *member, w *waiter[JoinResult]) {
	g.mu.Lock()
	if m.join == w {
		m.join = nil
		g.quietLocked(m)
	}
	g.unlock()
}

// leftSync is leftJoin for a caller that waited for its assignment.
func (g *group) leftSync(m *member, w *waiter[SyncResult]) {
	g.mu.Lock()
	if m.sync == w {
		m.sync = nil
		g.quietLocked(m)
	}
	g.unlock()
}

// quietLocked restarts the session timeout of a member that no longer waits.
func (g *group) quietLocked(m *member) {
	m.heard()
	g.hurryLocked()
}
