package groups

import (
	"crypto/rand"
	"fmt"
	"slices"
	"time"
)

// classicMember is the additional state of a member that uses the classic protocol in a group with the consumer
// protocol. It is immutable.
type classicMember struct {
	session   time.Duration
	protocols []Protocol // the preferred one first
}

func (m *classicMember) equal(other *classicMember) bool {
	if m == nil || other == nil {
		return m == other
	}
	return m.session == other.session && slices.EqualFunc(m.protocols, other.protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && string(a.Metadata) == string(b.Metadata)
	})
}

// joinConsumers handles a classic member's request to join a group with the consumer protocol.
func (c *Coordinator) joinConsumers(key Key, req *JoinRequest) (JoinResult, error) {
	if req.Type != protocolConsumer || req.Classic == nil {
		return JoinResult{}, ErrProtocol
	}
	subscribed, err := req.Classic.Subscription(req.Protocols[0].Metadata, true)
	if err != nil {
		return JoinResult{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	g, err := c.shard(key).lock(key, false)
	if err != nil {
		return JoinResult{}, err
	}
	defer g.unlock()
	if err := g.mayJoinLocked(req); err != nil {
		return JoinResult{MemberID: req.MemberID}, err
	}
	if g.consumers == nil {
		return JoinResult{MemberID: req.MemberID}, ErrRebalancing // it has just become classic; the client retries
	}
	return g.joinClassicLocked(req, &subscribed)
}

// joinClassicLocked adds a classic member to a group with the consumer protocol, or moves it towards its target.
// It does not wait for other members: the epoch of the member is its generation, and the coordinator assigns.
func (g *group) joinClassicLocked(req *JoinRequest, subscribed *ClassicSubscription) (JoinResult, error) {
	cs := g.consumers
	if !cs.compatible(req) {
		return JoinResult{}, ErrProtocol
	}
	id := req.MemberID
	switch {
	case id == "" && req.InstanceID != "":
		id = shownInstance(req.InstanceID) + "-" + rand.Text()
	case id == "":
		if id = req.ClientID + "-" + rand.Text(); req.RequireMemberID {
			return JoinResult{MemberID: id}, ErrMemberIDRequired
		}
	}
	before, replaced := cs.members[id], cs.members[cs.static[req.InstanceID]]
	if req.InstanceID == "" || replaced == before {
		replaced = nil
	}
	switch {
	case replaced != nil && (req.MemberID != "" || !replaced.owner.belongsTo(&req.Caller)):
		return JoinResult{MemberID: req.MemberID}, ErrFencedInstance
	case before == nil && replaced == nil && len(cs.members) >= maxMembers:
		return JoinResult{}, fmt.Errorf("%w: %d", ErrGroupFull, maxMembers)
	}
	heartbeat := req.heartbeat(id, before, subscribed)
	change := &subscription{names: heartbeat.Names}
	found := &resolution{
		subscription: *change, topics: sortedTopics(subscribed.Topics), reads: req.Subscribed,
		revision: req.Topics.Revision(), resolvedAt: time.Now(),
	}
	if _, err := g.applyHeartbeatLocked(heartbeat, change, found, before, replaced); err != nil {
		return JoinResult{MemberID: req.MemberID}, err
	}
	m := cs.members[id]
	g.setDeadlineLocked(m)
	result := JoinResult{MemberID: id, Generation: m.epoch, Type: protocolConsumer, Protocol: req.Protocols[0].Name}
	return result, g.settleLocked()
}

// heartbeat returns the heartbeat that has the effect of the request.
func (r *JoinRequest) heartbeat(id string, before *consumer, subscribed *ClassicSubscription) *ConsumerRequest {
	noPattern := ""
	heartbeat := &ConsumerRequest{
		MemberID: id, InstanceID: r.InstanceID, ClientID: r.ClientID, ClientHost: r.ClientHost,
		Rack: subscribed.Rack, RebalanceTimeout: r.effectiveRebalanceTimeout(),
		Names: append([]string{}, subscribed.Names...), Pattern: &noPattern,
		Owned: append([]Partition{}, subscribed.Owned...), Topics: r.Topics, Caller: r.Caller,
		classic: &classicMember{session: r.SessionTimeout, protocols: r.Protocols},
	}
	if before != nil {
		heartbeat.Epoch = before.epoch
	}
	return heartbeat
}

// compatible reports whether a joining classic member has a protocol that all other classic members support.
func (cs *consumers) compatible(req *JoinRequest) bool {
	return slices.ContainsFunc(req.Protocols, func(p Protocol) bool {
		for _, m := range cs.members {
			if m.classic != nil && m.id != req.MemberID && !slices.ContainsFunc(m.classic.protocols,
				func(q Protocol) bool { return q.Name == p.Name }) {
				return false
			}
		}
		return true
	})
}

// settleLocked returns once the group's changes are durable, and then changes the group back to the classic
// protocol if no member uses the consumer protocol any more.
func (g *group) settleLocked() error {
	if err := g.waitDurableLocked(); err != nil {
		return err
	}
	g.downgradeLocked()
	return nil
}

// classicMember returns the classic member with the ids of a request, in its current epoch.
func (cs *consumers) classicMember(id, instance string, generation int32) (*consumer, error) {
	if instance != "" {
		switch current, ok := cs.static[instance]; {
		case !ok:
			return nil, ErrUnknownMember
		case current != id:
			return nil, ErrFencedInstance
		}
	}
	m := cs.members[id]
	switch {
	case m == nil || m.classic == nil:
		return nil, ErrUnknownMember
	case m.epoch != generation:
		return nil, ErrGeneration
	}
	return m, nil
}

// setDeadlineLocked starts the time that a classic member has to send the next request of a rebalance.
func (g *group) setDeadlineLocked(m *consumer) {
	m.revokeBy = time.Now().Add(m.rebalanceTimeout)
	g.resetTimerLocked()
}

// heartbeatClassicLocked handles a heartbeat of a classic member. It returns ErrRebalancing when the member must
// join again: to learn of a new target, to confirm that it has revoked partitions, or to get released ones.
func (g *group) heartbeatClassicLocked(m *consumer) error {
	m.expires = time.Now().Add(m.sessionTimeout())
	if m.epoch == g.number && (m.stage == reconciled || m.stage == unreleased && !g.consumers.released(m)) {
		return nil
	}
	if m.revokeBy.IsZero() {
		g.setDeadlineLocked(m)
	}
	return ErrRebalancing
}

// released reports whether no other member owns a partition of a member's target any more.
func (cs *consumers) released(m *consumer) bool {
	return !slices.ContainsFunc(m.target, func(p Partition) bool {
		owner, owned := cs.owners[p]
		return owned && owner != m.id
	})
}

// syncClassicLocked returns the partitions of a classic member.
func (g *group) syncClassicLocked(m *consumer, req *SyncRequest) (SyncResult, error) {
	protocol := m.classic.protocols[0]
	switch {
	case req.NamesProtocol && (req.Type != protocolConsumer || req.Protocol != protocol.Name):
		return SyncResult{}, ErrProtocol
	case g.number > m.epoch && m.stage != revoking:
		return SyncResult{}, ErrRebalancing
	}
	m.expires = time.Now().Add(m.sessionTimeout())
	if m.stage != revoking {
		m.revokeBy = time.Time{}
	}
	return SyncResult{
		Type: protocolConsumer, Protocol: protocol.Name,
		Assigned: &ClassicAssignment{Metadata: protocol.Metadata, Partitions: sortedPartitions(m.assigned)},
	}, nil
}
