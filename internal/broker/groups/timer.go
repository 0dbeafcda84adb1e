package groups

import (
	"errors"
	"log/slog"
	"time"
)

// setTimerLocked sets the timer to the earliest deadline unless a timer is running. A timer that is
// set to an earlier time fires and sets itself again.
func (g *group) setTimerLocked() {
	if g.gone || g.timer != nil {
		return
	}
	next, ok := g.nextLocked()
	if !ok {
		return
	}
	g.timer = time.AfterFunc(time.Until(next), g.tick)
}

// hurryLocked sets the timer again, for a deadline that may be earlier than the timer's.
func (g *group) hurryLocked() {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	g.setTimerLocked()
}

// nextLocked returns the earliest deadline.
func (g *group) nextLocked() (next time.Time, ok bool) {
	earliest := func(t time.Time) {
		if !ok || t.Before(next) {
			next, ok = t, true
		}
	}
	if g.phase == preparing || g.phase == completing {
		earliest(g.deadline)
	}
	for _, end := range g.pending {
		earliest(end)
	}
	for _, m := range g.members {
		if !m.waits() {
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
	if g.gone {
		g.mu.Unlock()
		return
	}
	now := time.Now()
	if g.consumers != nil {
		g.tickConsumersLocked(now)
		g.unlock()
		return
	}
	for id, end := range g.pending {
		if !now.Before(end) {
			delete(g.pending, id)
		}
	}
	var lost []*member
	for _, m := range g.members {
		if !m.waits() && !now.Before(m.expires) {
			lost = append(lost, m)
		}
	}
	if len(lost) > 0 {
		for _, m := range lost {
			g.removeLocked(m, ErrUnknownMember)
		}
		g.changedLocked(now)
	}
	switch {
	case g.phase == preparing && !now.Before(g.deadline):
		g.joinTimeLocked(now)
	case g.phase == preparing:
		g.maybeJoinedLocked(now)
	case g.phase == completing && !now.Before(g.deadline):
		g.syncTimeLocked(now)
	}
	g.unlock()
}

// tickConsumersLocked removes members with the consumer protocol whose deadline has passed, and
// stores that. If storing fails, the members are still in the group when it is loaded again.
func (g *group) tickConsumersLocked(now time.Time) {
	g.expireConsumersLocked(now)
	if err := g.durableLocked(); err != nil && !errors.Is(err, ErrClosed) {
		g.shard.c.log.LogAttrs(g.shard.c.ctx, slog.LevelWarn,
			"storing the end of a member's session failed; the group will be reloaded with the member",
			slog.String("group", g.key.Group), slog.String("tenant", g.key.Tenant), slog.Any("error", err))
	}
}
