package groups

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"freshet/internal/base/names"
)

// Protocol is an assignment protocol that a member supports, with the metadata that the leader
// needs about the member.
type Protocol struct {
	Name     string
	Metadata []byte
}

// EmptyInstanceID represents the instance id "" in requests, in which "" means none. Kafka accepts an empty
// instance id, and its member is static.
const EmptyInstanceID = "\x00"

// shownInstance returns an instance id as clients know it.
func shownInstance(id string) string {
	if id == EmptyInstanceID {
		return ""
	}
	return id
}

// JoinRequest is a request to become a member of the next generation.
type JoinRequest struct {
	MemberID         string // "" for a new member
	InstanceID       string // of a static member; "" for none, see EmptyInstanceID
	ClientID         string
	ClientHost       string
	SessionTimeout   time.Duration
	RebalanceTimeout time.Duration // rebalance timeout; 0 means the session timeout
	Type             string        // such as "consumer"
	Protocols        []Protocol    // the preferred one first
	// RequireMemberID makes Join return ErrMemberIDRequired with an id to a new member without an instance id. A
	// client that never receives the response then leaves no member behind.
	RequireMemberID bool
	// SupportsSkipAssignment means that the client understands SkipAssignment.
	SupportsSkipAssignment bool

	Caller Caller
	// Subscribed are the topics that the member subscribes to in its metadata. Unknown is set instead if the
	// metadata does not contain them in a known form.
	Subscribed []names.Topic
	Unknown    bool

	// Topics and Classic are for consumers that join a group with the consumer protocol.
	Topics  Topics
	Classic ClassicCodec
}

// owner returns the owner of the joining member.
func (r *JoinRequest) owner() owner {
	return owner{principal: r.Caller.Principal, topics: r.Subscribed, unknown: r.Unknown}
}

// JoinResult is a generation as returned to one of its members.
type JoinResult struct {
	MemberID       string
	Generation     int32
	Type           string
	Protocol       string
	Leader         string
	Members        []JoinedMember // for the leader only
	SkipAssignment bool           // for the leader: the current assignments remain valid
}

// JoinedMember is a member as returned to the leader.
type JoinedMember struct {
	ID         string
	Static     bool
	InstanceID string // of a static member
	Metadata   []byte
}

// Join makes the caller a member and returns when the group's next generation begins. With
// ErrMemberIDRequired the result contains the member id to join again with.
func (c *Coordinator) Join(ctx context.Context, key Key, req *JoinRequest) (JoinResult, error) {
	if err := errors.Join(key.validate(), req.check()); err != nil {
		return JoinResult{}, err
	}
	g, err := c.shard(key).lock(key, req.MemberID == "")
	if errors.Is(err, ErrNoGroup) {
		err = ErrUnknownMember
	}
	if err != nil {
		return JoinResult{}, err
	}
	err = g.mayJoinLocked(req)
	if err == nil && g.consumers != nil && len(g.consumers.members) > 0 {
		g.unlock()
		return c.joinConsumers(key, req)
	}
	if err == nil && g.consumers != nil {
		if err = g.becomeClassicLocked(); err == nil { // it releases the mutex, so the check is repeated
			err = g.mayJoinLocked(req)
		}
	}
	if err == nil && len(g.members) > 0 && !g.compatibleLocked(req) {
		err = ErrProtocol
	}
	release := func() {}
	if err == nil {
		release, err = g.checkMemoryLocked(req)
	}
	if err != nil {
		g.unlock()
		return JoinResult{}, err
	}
	w, result, err := g.joinLocked(req)
	release() // the group counts the member now
	if w == nil {
		g.unlock()
		return result, err
	}
	m := g.members[w.memberID]
	g.unlock()
	return w.wait(ctx, func() { g.cancelJoin(m, w) })
}

// mayJoinLocked returns an error unless the caller may join the group with the ids of the request.
func (g *group) mayJoinLocked(req *JoinRequest) error {
	if req.MemberID == "" {
		return g.mayUseLocked(&req.Caller, nil)
	}
	o := g.ownerLocked(req.MemberID)
	if o == nil || !o.belongsTo(&req.Caller) {
		return g.admitLocked(&req.Caller, req.MemberID)
	}
	return g.mayUseLocked(&req.Caller, o) // the request replaces the subscription of the member
}

// size returns the bytes of protocol names and metadata.
func size(protocols []Protocol) (n int) {
	for i := range protocols {
		n += len(protocols[i].Name) + len(protocols[i].Metadata)
	}
	return n
}

// checkMemoryLocked returns ErrGroupFull when the metadata of the member would exceed a memory limit. Otherwise it
// reserves the bytes of the member until release is called.
func (g *group) checkMemoryLocked(req *JoinRequest) (release func(), err error) {
	joining := req.owner()
	more := size(req.Protocols) + joining.size()
	counted := memberOverhead + len(req.InstanceID) + len(req.ClientID) + len(req.ClientHost) + more
	id := req.MemberID
	if id == "" && req.InstanceID != "" {
		id = g.static[req.InstanceID] // the member that it replaces
	}
	if old := g.members[id]; old != nil {
		more -= size(old.protocols) + old.owner.size()
		counted = more
	}
	if more > 0 && (g.memberBytes+more > maxGroupBytes || g.shard.c.memberBytes.Load()+int64(more) > maxClusterBytes) {
		return nil, ErrGroupFull
	}
	return g.reserveMemberLocked(req.Caller.Principal, counted)
}

// check validates a request on its own. Any rebalance timeout is accepted, because only the members
// know how long they work on their records.
func (r *JoinRequest) check() error {
	size := size(r.Protocols)
	switch {
	case len(r.InstanceID) > maxInstanceID:
		return fmt.Errorf("%w: instance id has %d bytes, at most %d are allowed", ErrTooLarge,
			len(r.InstanceID), maxInstanceID)
	case r.SessionTimeout < minSessionTimeout || r.SessionTimeout > maxSessionTimeout:
		return fmt.Errorf("%w: %s", ErrSessionTimeout, r.SessionTimeout)
	case r.Type == "" || len(r.Protocols) == 0:
		return fmt.Errorf("%w: member lists no protocol", ErrProtocol)
	case len(r.Subscribed) > maxSubscribedTopics:
		return fmt.Errorf("%w: subscription lists %d topics, at most %d are allowed", ErrTooLarge,
			len(r.Subscribed), maxSubscribedTopics)
	case len(r.Protocols) > maxProtocols || size > maxMemberBytes:
		return fmt.Errorf("%w: %d protocols with %d bytes, at most %d with %d are allowed", ErrTooLarge,
			len(r.Protocols), size, maxProtocols, maxMemberBytes)
	}
	return nil
}

// effectiveRebalanceTimeout returns how long the group waits for the member during a rebalance.
func (r *JoinRequest) effectiveRebalanceTimeout() time.Duration {
	if r.RebalanceTimeout <= 0 {
		return r.SessionTimeout
	}
	return min(r.RebalanceTimeout, maxRebalanceTimeout)
}

// compatibleLocked reports whether a member is compatible with the other members: it has their type,
// and a protocol that all of them support.
func (g *group) compatibleLocked(req *JoinRequest) bool {
	others := len(g.members)
	known := func(p Protocol) bool { return g.protocolSupport[p.Name] == others }
	if old := g.members[req.MemberID]; old != nil { // a known member may change its protocols
		others--
		known = func(p Protocol) bool {
			n := g.protocolSupport[p.Name]
			if old.supports(p.Name) {
				n--
			}
			return n == others
		}
	}
	return others == 0 || g.protocolType == req.Type && slices.ContainsFunc(req.Protocols, known)
}

func (m *member) supports(protocol string) bool {
	return slices.ContainsFunc(m.protocols, func(p Protocol) bool { return p.Name == protocol })
}

// joinLocked handles a request to join. It returns a waiter if the caller has to wait, and
// otherwise the result.
func (g *group) joinLocked(req *JoinRequest) (*waiter[JoinResult], JoinResult, error) {
	if req.MemberID == "" {
		return g.joinNewLocked(req)
	}
	if g.removePendingLocked(req.MemberID) {
		return g.addMemberLocked(req, req.MemberID)
	}
	m, err := g.memberLocked(req.MemberID, req.InstanceID)
	if err != nil {
		return nil, JoinResult{MemberID: req.MemberID}, err
	}
	return g.rejoinLocked(m, req)
}

// memberLocked returns the member with the ids of a request.
func (g *group) memberLocked(id, instance string) (*member, error) {
	if instance != "" {
		current, ok := g.static[instance]
		if !ok {
			return nil, ErrUnknownMember
		}
		if current != id {
			return nil, ErrFencedInstance
		}
	}
	if m := g.members[id]; m != nil {
		return m, nil
	}
	return nil, ErrUnknownMember
}

// joinNewLocked handles a request without a member id.
func (g *group) joinNewLocked(req *JoinRequest) (*waiter[JoinResult], JoinResult, error) {
	if req.InstanceID != "" {
		id := shownInstance(req.InstanceID) + "-" + rand.Text()
		if old, ok := g.static[req.InstanceID]; ok {
			if !g.members[old].owner.belongsTo(&req.Caller) {
				return nil, JoinResult{}, ErrFencedInstance
			}
			return g.replaceLocked(g.members[old], id, req)
		}
		return g.addMemberLocked(req, id)
	}
	id := req.ClientID + "-" + rand.Text()
	if !req.RequireMemberID {
		return g.addMemberLocked(req, id)
	}
	if len(g.members)+len(g.pending) >= maxMembers {
		return nil, JoinResult{}, ErrGroupFull
	}
	g.addPendingLocked(id, pendingMember{
		expires: time.Now().Add(req.SessionTimeout), principal: req.Caller.Principal,
	})
	g.resetTimerLocked()
	return nil, JoinResult{MemberID: id}, ErrMemberIDRequired
}

// addMemberLocked adds a new member and starts a rebalance.
func (g *group) addMemberLocked(req *JoinRequest, id string) (*waiter[JoinResult], JoinResult, error) {
	if len(g.members) >= maxMembers {
		return nil, JoinResult{}, ErrGroupFull
	}
	m := &member{id: id, instance: req.InstanceID}
	m.applyRequest(req)
	if len(g.members) == 0 {
		g.protocolType, g.leader = req.Type, ""
	}
	g.addLocked(m)
	g.memberJoined = true
	return g.awaitJoinLocked(m), JoinResult{}, nil
}

// applyRequest copies the member's description from the request.
func (m *member) applyRequest(req *JoinRequest) {
	m.client, m.host = req.ClientID, req.ClientHost
	m.sessionTimeout, m.rebalanceTimeout = req.SessionTimeout, req.effectiveRebalanceTimeout()
	m.protocols, m.owner = req.Protocols, req.owner()
}

// updateLocked replaces the description of a member that joins again.
func (g *group) updateLocked(m *member, req *JoinRequest) {
	g.countProtocolsLocked(m, -1)
	m.applyRequest(req)
	g.countProtocolsLocked(m, 1)
}

// awaitJoinLocked returns a waiter for the next generation.
func (g *group) awaitJoinLocked(m *member) *waiter[JoinResult] {
	m.respondJoin(JoinResult{MemberID: m.id}, ErrRebalancing) // an earlier call still waits
	w := newWaiter[JoinResult](m.id)
	m.pendingJoin = w
	if now := time.Now(); g.phase == preparing {
		g.tryCompleteJoinLocked(now)
	} else {
		g.prepareRebalanceLocked(now)
	}
	return w
}

// rejoinLocked handles a request of a known member.
func (g *group) rejoinLocked(m *member, req *JoinRequest) (*waiter[JoinResult], JoinResult, error) {
	joining := req.owner()
	same := m.sameProtocols(req.Protocols) && m.owner.equal(&joining)
	switch {
	case g.phase == completing && same, g.phase == stable && same && m.id != g.leader:
		// The client did not receive the response, or did not know that nothing changes.
		m.renewSession()
		return nil, g.resultLocked(m), nil
	}
	g.updateLocked(m, req)
	return g.awaitJoinLocked(m), JoinResult{}, nil
}

func (m *member) sameProtocols(protocols []Protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && string(a.Metadata) == string(b.Metadata)
	})
}

// resultLocked returns the generation as seen by a member.
func (g *group) resultLocked(m *member) JoinResult {
	result := JoinResult{
		MemberID: m.id, Generation: g.number, Type: g.protocolType, Protocol: g.protocol,
		Leader: g.leader,
	}
	if m.id == g.leader {
		for _, other := range g.inOrderLocked() {
			result.Members = append(result.Members,
				JoinedMember{
					ID: other.id, Static: other.instance != "", InstanceID: shownInstance(other.instance),
					Metadata: other.metadata(g.protocol),
				})
		}
	}
	return result
}

// replaceLocked replaces a static member by a new process and fences the old one. If the protocols
// are unchanged and the group is stable, no rebalance is needed.
func (g *group) replaceLocked(old *member, id string, req *JoinRequest) (*waiter[JoinResult], JoinResult, error) {
	before := old.metadata(g.protocol)
	formerLeader := g.leader
	old.respondJoin(JoinResult{MemberID: old.id}, ErrFencedInstance)
	old.respondSync(SyncResult{}, ErrFencedInstance)

	delete(g.members, old.id)
	g.countProtocolsLocked(old, -1)
	m := &member{
		id: id, instance: old.instance, joinOrder: old.joinOrder, assignment: old.assignment,
		synced: old.synced,
	}
	m.applyRequest(req)
	g.members[id] = m
	g.static[m.instance] = id
	g.countProtocolsLocked(m, 1)
	if g.leader == old.id {
		g.leader = id
	}
	if g.phase != stable || string(before) != string(m.metadata(g.protocol)) || g.chooseProtocolLocked() != g.protocol {
		return g.awaitJoinLocked(m), JoinResult{}, nil
	}
	m.renewSession()
	if err := g.storeLocked(); err != nil {
		return nil, JoinResult{}, err
	}
	result := g.resultLocked(m)
	if formerLeader == old.id {
		if req.SupportsSkipAssignment {
			result.SkipAssignment = true
		} else {
			// The client must not conclude that it has to assign partitions: the assignments
			// remain.
			result.Leader, result.Members = formerLeader, nil
		}
	}
	return nil, result, nil
}
