package groups

import (
	"errors"
	"time"
)

// Heartbeat renews a member's session. It returns ErrRebalancing when the member must join again.
func (c *Coordinator) Heartbeat(key Key, caller Caller, id, instance string, generation int32) error {
	if err := key.validate(); err != nil {
		return err
	}
	g, m, err := c.lockMember(key, &caller, id, instance, generation)
	if err != nil {
		return err
	}
	defer g.unlock()
	if g.consumers != nil {
		classic, err := g.consumers.classicMember(id, instance, generation)
		if err != nil {
			return err
		}
		return g.heartbeatClassicLocked(classic)
	}
	m.renewSession()
	if g.phase == preparing {
		return ErrRebalancing
	}
	return nil
}

// LeavingMember identifies a member that leaves: by its id, or by its instance id alone.
type LeavingMember struct {
	MemberID   string
	InstanceID string
}

// Leave removes members of the caller from a group and returns an error for each member that it could not
// remove. A caller who may no longer use the group can still leave it.
func (c *Coordinator) Leave(key Key, caller Caller, leavers []LeavingMember) ([]error, error) {
	if err := key.validate(); err != nil {
		return nil, err
	}
	g, err := c.shard(key).lock(key, false)
	if errors.Is(err, ErrNoGroup) {
		failed := make([]error, len(leavers))
		for i := range failed {
			failed[i] = ErrUnknownMember
		}
		return failed, nil
	}
	if err != nil {
		return nil, err
	}
	defer g.unlock()
	failed := make([]error, len(leavers))
	if g.consumers != nil {
		for i, l := range leavers {
			failed[i] = g.removeConsumerLocked(l, &caller)
		}
		return failed, g.settleLocked()
	}
	changed := false
	for i, l := range leavers {
		failed[i] = g.leaveLocked(l, &caller)
		changed = changed || failed[i] == nil
	}
	if changed {
		g.onMembersRemovedLocked(time.Now())
	}
	return failed, nil
}

func (g *group) leaveLocked(l LeavingMember, caller *Caller) error {
	if l.InstanceID != "" {
		current, ok := g.static[l.InstanceID]
		if !ok || !g.ownerLocked(current).belongsTo(caller) {
			return ErrUnknownMember
		}
		if l.MemberID != "" && l.MemberID != current {
			return ErrFencedInstance
		}
		l.MemberID = current
	}
	if o := g.ownerLocked(l.MemberID); o == nil || !o.belongsTo(caller) {
		return ErrUnknownMember
	}
	if g.removePendingLocked(l.MemberID) {
		return nil
	}
	g.removeLocked(g.members[l.MemberID], ErrUnknownMember)
	return nil
}

// removeConsumerLocked removes a member of a group with the consumer protocol. Members with that protocol usually
// leave with a heartbeat.
func (g *group) removeConsumerLocked(l LeavingMember, caller *Caller) error {
	cs := g.consumers
	if l.InstanceID != "" {
		id, ok := cs.static[l.InstanceID]
		switch {
		case !ok || !cs.members[id].owner.belongsTo(caller):
			return ErrUnknownMember
		case l.MemberID != "" && l.MemberID != id:
			return ErrFencedInstance
		}
		l.MemberID = id
	}
	m := cs.members[l.MemberID]
	if m == nil || !m.owner.belongsTo(caller) {
		return ErrUnknownMember
	}
	cs.remove(m)
	g.number++
	return nil
}
