package groups

import "time"

// prepareLocked begins a rebalance: members are waited for.
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

// rebalanceLocked is how long all members have to join again: as long as the
// slowest may take.
func (g *group) rebalanceLocked() time.Duration {
	var longest time.Duration
	for _, m := range g.members {
		longest = max(longest, m.rebalance)
	}
	return longest
}

// maybeJoinedLocked ends the wait early when everybody is there.
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

// joinTimeLocked ends the wait for members when its time is over. Who has not
// come is out, but a static member keeps its place until its session ends.
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
	if !waiting && len(g.members) > 0 { // static members only: wait for one to come, or to expire
		g.deadline = now.Add(max(g.rebalanceLocked(), time.Second))
		return
	}
	g.joinedLocked(now)
}

// joinedLocked begins the next generation with those who have joined.
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

// emptyLocked is what a group is without members.
func (g *group) emptyLocked() {
	g.phase, g.leader, g.protocol = empty, "", ""
	g.emptied = true
}

// chooseLocked returns the protocol that most members prefer among those that
// all of them know.
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

// changedLocked rebalances after members have gone.
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

// leftJoin notes that a caller no longer waits. Its member stays for a session.
func (g *group) leftJoin(m *member, w *waiter[JoinResult]) {
	g.mu.Lock()
	if m.join == w {
		m.join = nil
		g.quietLocked(m)
	}
	g.unlock()
}

// leftSync does the same for a caller that waited for its assignment.
func (g *group) leftSync(m *member, w *waiter[SyncResult]) {
	g.mu.Lock()
	if m.sync == w {
		m.sync = nil
		g.quietLocked(m)
	}
	g.unlock()
}

// quietLocked begins the session of a member that no longer waits.
func (g *group) quietLocked(m *member) {
	m.heard()
	g.hurryLocked()
}
