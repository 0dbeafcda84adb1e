package groups

import (
	"errors"
	"log/slog"
	"time"
)

// setTimerLocked sets the timer to the earliest deadline unless a timer is running. A timer that is
// set to an earlier time fires and sets itself again.
func (g *group) setTimerLocked() {
	if g.removed || g.timer != nil {
		return
	}
	next, ok := g.nextDeadlineLocked()
	if !ok {
		return
	}
	g.timer = time.AfterFunc(time.Until(next), g.tick)
}

// resetTimerLocked sets the timer again, for a deadline that may be earlier than the timer's.
func (g *group) resetTimerLocked() {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	g.setTimerLocked()
}

// nextDeadlineLocked returns the earliest deadline.
func (g *group) nextDeadlineLocked() (next time.Time, ok bool) {
	earliest := func(t time.Time) {
		if !ok || t.Before(next) {
			next, ok = t, true
		}
	}
	if g.phase == preparing || g.phase == completing {
		earliest(g.deadline)
	}
	for _, p := range g.pending {
		earliest(p.expires)
	}
	for _, m := range g.members {
		if !m.isWaiting() {
			earliest(m.expires)
		}
	}
	if g.consumers != nil {
		for _, m := range g.consumers.members {
			earliest(m.expires)
			if !m.revokeBy.IsZero() {
				earliest(m.revokeBy)
			}
		}
	}
	return next, ok
}

// tick handles all deadlines that have passed.
func (g *group) tick() {
	g.mu.Lock()
	g.timer = nil
	if g.removed {
		g.mu.Unlock()
		return
	}
	now := time.Now()
	if g.consumers != nil {
		g.tickConsumersLocked(now)
		g.unlock()
		return
	}
	for id, p := range g.pending {
		if !now.Before(p.expires) {
			delete(g.pending, id)
		}
	}
	var lost []*member
	for _, m := range g.members {
		if !m.isWaiting() && !now.Before(m.expires) {
			lost = append(lost, m)
		}
	}
	if len(lost) > 0 {
		for _, m := range lost {
			g.removeLocked(m, ErrUnknownMember)
		}
		g.onMembersRemovedLocked(now)
	}
	switch {
	case g.phase == preparing && !now.Before(g.deadline):
		g.onJoinTimeoutLocked(now)
	case g.phase == preparing:
		g.tryCompleteJoinLocked(now)
	case g.phase == completing && !now.Before(g.deadline):
		g.onSyncTimeoutLocked(now)
	}
	g.unlock()
}

// tickConsumersLocked removes members with the consumer protocol whose deadline has passed, and
// stores that. If storing fails, the members are still in the group when it is loaded again.
func (g *group) tickConsumersLocked(now time.Time) {
	g.expireConsumersLocked(now)
	if err := g.settleLocked(); err != nil && !errors.Is(err, ErrClosed) {
		g.shard.c.log.LogAttrs(g.shard.c.ctx, slog.LevelWarn,
			"storing the end of a member's session failed; the group will be reloaded with the member",
			slog.String("group", g.key.Group), slog.String("tenant", g.key.Tenant), slog.Any("error", err))
	}
}
