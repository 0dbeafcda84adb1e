package groups

import (
	"errors"
	"log/slog"
	"time"
)

// setTimerLocked sets the timer to the earliest deadline. One that is set for an
// earlier time stays: it will set itself again.
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

// hurryLocked makes sure that the timer fires at the deadline of a phase, which
// may be earlier than what it is set to.
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

// tick looks at everything whose time may have come.
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

// tickConsumersLocked takes out members of the consumer protocol whose time is
// over, and writes that down. When it cannot be, they are there again.
func (g *group) tickConsumersLocked(now time.Time) {
	g.expireConsumersLocked(now)
	if err := g.durableLocked(); err != nil && !errors.Is(err, ErrClosed) {
		g.shard.c.log.LogAttrs(g.shard.c.ctx, slog.LevelWarn,
			"end of a member's session is not stored; it is waited for again",
			slog.String("group", g.key.Group), slog.String("tenant", g.key.Tenant), slog.String("error", err.Error()))
	}
}
