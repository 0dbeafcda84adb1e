package groups

import (
	"bytes"
	"slices"
	"time"

	"freshet/internal/storage/engine"
)

// ClassicCodec decodes what classic consumers send each other through the coordinator. Its methods may block.
type ClassicCodec interface {
	// Subscription decodes the metadata of a member. Topics of a member other than the caller (own is false) are
	// not limited to those that the caller may describe.
	Subscription(metadata []byte, own bool) (ClassicSubscription, error)
	// Assignment decodes the assignment that a leader made for a member.
	Assignment(assignment []byte) ([]Partition, error)
}

// ClassicSubscription is the decoded metadata of a classic consumer.
type ClassicSubscription struct {
	Names  []string         // subscribed topics as the member names them
	Topics []engine.TopicID // those that exist
	Owned  []Partition      // partitions that the member owns
	Rack   string           // "" for none
}

// A classic group of consumers changes to the consumer protocol when a member with that protocol joins: an
// upgrade. Its classic members stay and join again, see joinClassicLocked. When the last member with the consumer
// protocol leaves, the group changes back: a downgrade.

// upgrade is a classic group with the decoded subscriptions and assignments of its members. They are decoded
// without the group's lock, so the group may have changed when they are used.
type upgrade struct {
	number  int32
	phase   phase
	members []upgradedMember
}

type upgradedMember struct {
	id                   string
	metadata, assignment []byte
	subscription         ClassicSubscription
	assigned             []Partition
}

// beginUpgradeLocked returns the members to decode for an upgrade.
func (g *group) beginUpgradeLocked() *upgrade {
	u := &upgrade{number: g.number, phase: g.phase}
	for _, m := range g.inOrderLocked() {
		u.members = append(u.members,
			upgradedMember{
				id: m.id, metadata: g.consumerMetadataLocked(m), assignment: m.assignment, assigned: m.assigned,
			})
	}
	return u
}

// consumerMetadataLocked returns the metadata with a member's subscription. A member sends the same subscription
// for every protocol.
func (g *group) consumerMetadataLocked(m *member) []byte {
	if metadata := m.metadata(g.protocol); metadata != nil {
		return metadata
	}
	return m.protocols[0].Metadata
}

// decode decodes the members. It may block.
func (u *upgrade) decode(codec ClassicCodec) (err error) {
	for i := range u.members {
		m := &u.members[i]
		if m.subscription, err = codec.Subscription(m.metadata, false); err != nil {
			return err
		}
		switch {
		case u.phase == completing: // the member has no assignment yet
			m.assigned = m.subscription.Owned
		case len(m.assignment) > 0:
			if m.assigned, err = codec.Assignment(m.assignment); err != nil {
				return err
			}
		}
	}
	return nil
}

// isCurrentLocked reports whether the group has not changed since beginUpgradeLocked.
func (u *upgrade) isCurrentLocked(g *group) bool {
	if u == nil || u.number != g.number || u.phase != g.phase || len(u.members) != len(g.members) {
		return false
	}
	return !slices.ContainsFunc(u.members, func(u upgradedMember) bool {
		m := g.members[u.id]
		return m == nil || !bytes.Equal(g.consumerMetadataLocked(m), u.metadata) ||
			!bytes.Equal(m.assignment, u.assignment)
	})
}

// upgradeLocked changes a classic group with members to the consumer protocol. The members keep their partitions
// until they join again. The caller stores the group.
func (g *group) upgradeLocked(u *upgrade, revision uint64) {
	g.chargeAssignmentsLocked("", 0)
	cs := newConsumers(g)
	cs.assignmentEpoch = g.number
	now := time.Now()
	for i := range u.members {
		of, m := &u.members[i], g.members[u.members[i].id]
		m.respondJoin(JoinResult{MemberID: m.id}, ErrRebalancing)
		m.respondSync(SyncResult{}, ErrRebalancing)
		g.countProtocolsLocked(m, -1)
		next := &consumer{
			id: m.id, instance: m.instance, client: m.client, host: m.host,
			rack: of.subscription.Rack, rebalanceTimeout: m.rebalanceTimeout,
			subscription: subscription{names: of.subscription.Names},
			topics:       sortedTopics(of.subscription.Topics), epoch: g.number, previousEpoch: g.number,
			assigned: make(map[Partition]int32), revision: revision, resolved: now,
			classic: &classicMember{session: m.sessionTimeout, protocols: m.protocols}, owner: m.owner,
		}
		for _, p := range of.assigned {
			if _, taken := cs.owners[p]; !taken {
				next.assigned[p] = g.number
			}
		}
		next.target = sortedPartitions(next.assigned)
		next.expires = now.Add(next.sessionTimeout())
		cs.put(next)
	}
	clear(g.members)
	clear(g.static)
	g.clearPendingLocked()
	g.consumers, g.phase, g.leader, g.protocol, g.storeEmpty = cs, empty, "", "", false
	g.resetTimerLocked()
}

func sortedTopics(topics []engine.TopicID) []engine.TopicID {
	sorted := slices.Clone(topics)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// downgradeLocked changes a group back to the classic protocol if all of its members use that, and begins a
// rebalance. The journal has the group's last state with the consumer protocol until the rebalance ends; after
// a restart the members continue in that.
func (g *group) downgradeLocked() {
	cs := g.consumers
	if cs == nil || len(cs.members) == 0 || cs.version != cs.storedVersion || cs.failed != nil || g.removed {
		return
	}
	for _, m := range cs.members {
		if m.classic == nil {
			return
		}
	}
	g.consumers, g.protocolType, g.protocol, g.leader = nil, protocolConsumer, "", ""
	for _, m := range cs.inOrder() {
		cs.countBytes(m, -1)
		next := &member{
			id: m.id, instance: m.instance, client: m.client, host: m.host,
			sessionTimeout: m.classic.session, rebalanceTimeout: m.rebalanceTimeout,
			protocols: m.classic.protocols, assigned: sortedPartitions(m.assigned), synced: true, owner: m.owner,
		}
		next.renewSession()
		g.addLocked(next)
	}
	g.phase = stable // the members are known, so the rebalance has no initial delay
	g.prepareRebalanceLocked(time.Now())
}
