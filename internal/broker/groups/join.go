package groups

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Protocol is a way to assign partitions that a member knows, with what the
// leader has to know of the member for it.
type Protocol struct {
	Name     string
	Metadata []byte
}

// JoinRequest asks for membership in the next generation.
type JoinRequest struct {
	MemberID   string // "" for a member that is new
	InstanceID string // of a static member; "" for none
	ClientID   string
	ClientHost string
	Session    time.Duration
	Rebalance  time.Duration // how long the member may take to join again; 0 as long as the session
	Type       string        // such as "consumer"
	Protocols  []Protocol    // the preferred one first
	// NeedsID makes a new member without an instance id come twice, so that one
	// that never gets the answer leaves nothing behind.
	NeedsID bool
	// MaySkip says that the member understands SkipAssignment.
	MaySkip bool
}

// JoinResult is a generation as one of its members sees it.
type JoinResult struct {
	MemberID       string
	Generation     int32
	Type           string
	Protocol       string
	Leader         string
	Members        []JoinedMember // for the leader only
	SkipAssignment bool           // for the leader: the assignments in force stay
}

// JoinedMember is a member as the leader has to know it.
type JoinedMember struct {
	ID         string
	InstanceID string
	Metadata   []byte
}

// Join makes the caller a member and returns when the group's next generation
// begins. With ErrMemberID the result has the id to come back with.
func (c *Coordinator) Join(ctx context.Context, key Key, req *JoinRequest) (JoinResult, error) {
	if err := errors.Join(key.check(), req.check()); err != nil {
		return JoinResult{}, err
	}
	g, err := c.shard(key).lock(key, req.MemberID == "")
	if errors.Is(err, ErrNoGroup) {
		err = ErrUnknownMember
	}
	if err != nil {
		return JoinResult{}, err
	}
	err = g.becomeClassicLocked()
	if err == nil && len(g.members) > 0 && !g.supportsLocked(req) {
		err = ErrProtocol
	}
	if err == nil {
		err = g.roomLocked(req)
	}
	if err != nil {
		g.unlock()
		return JoinResult{}, err
	}
	w, result, err := g.joinLocked(req)
	if w == nil {
		g.unlock()
		return result, err
	}
	m := g.members[w.member]
	g.unlock()
	return w.wait(ctx, func() { g.leftJoin(m, w) })
}

// size is how many bytes of protocols a member brings.
func size(protocols []Protocol) (n int) {
	for i := range protocols {
		n += len(protocols[i].Name) + len(protocols[i].Metadata)
	}
	return n
}

// roomLocked says whether there is room for what a member brings, beside the
// others.
func (g *group) roomLocked(req *JoinRequest) error {
	more := size(req.Protocols)
	id := req.MemberID
	if id == "" && req.InstanceID != "" {
		id = g.static[req.InstanceID] // whose place it gets
	}
	if old := g.members[id]; old != nil {
		more -= size(old.protocols)
	}
	if more > 0 && (g.bytes+more > maxGroupBytes || g.shard.c.bytes.Load()+int64(more) > maxBytes) {
		return ErrGroupFull
	}
	return nil
}

// check looks at a request by itself. Any rebalance timeout is taken: it is for the
// members of the group to say how long they work on what they have.
func (r *JoinRequest) check() error {
	size := size(r.Protocols)
	switch {
	case len(r.InstanceID) > maxName:
		return fmt.Errorf("%w: the instance id has %d bytes, at most %d are allowed", ErrTooLarge,
			len(r.InstanceID), maxName)
	case r.Session < minSession || r.Session > maxSession:
		return fmt.Errorf("%w: %s", ErrSessionTimeout, r.Session)
	case r.Type == "" || len(r.Protocols) == 0:
		return fmt.Errorf("%w: the member names none", ErrProtocol)
	case len(r.Protocols) > maxProtocols || size > maxMemberBytes:
		return fmt.Errorf("%w: %d protocols with %d bytes, at most %d with %d are allowed", ErrTooLarge,
			len(r.Protocols), size, maxProtocols, maxMemberBytes)
	}
	return nil
}

// rebalance is how long the group really waits for the member.
func (r *JoinRequest) rebalance() time.Duration {
	if r.Rebalance <= 0 {
		return r.Session
	}
	return min(r.Rebalance, maxRebalance)
}

// supportsLocked says whether a member could take part beside those that are
// there: it has their type, and a protocol that all of them know.
func (g *group) supportsLocked(req *JoinRequest) bool {
	others := len(g.members)
	known := func(p Protocol) bool { return g.support[p.Name] == others }
	if old := g.members[req.MemberID]; old != nil { // it may change its own
		others--
		known = func(p Protocol) bool {
			n := g.support[p.Name]
			if old.knows(p.Name) {
				n--
			}
			return n == others
		}
	}
	return others == 0 || g.protocolType == req.Type && slices.ContainsFunc(req.Protocols, known)
}

func (m *member) knows(protocol string) bool {
	return slices.ContainsFunc(m.protocols, func(p Protocol) bool { return p.Name == protocol })
}

// joinLocked takes a request to join. It returns the waiter of a caller who has
// to wait, or the answer.
func (g *group) joinLocked(req *JoinRequest) (*waiter[JoinResult], JoinResult, error) {
	if req.MemberID == "" {
		return g.joinNewLocked(req)
	}
	if _, ok := g.pending[req.MemberID]; ok {
		delete(g.pending, req.MemberID)
		return g.admitLocked(req, req.MemberID)
	}
	m, err := g.memberLocked(req.MemberID, req.InstanceID)
	if err != nil {
		return nil, JoinResult{MemberID: req.MemberID}, err
	}
	return g.rejoinLocked(m, req)
}

// memberLocked returns a member by the ids that a request gives.
func (g *group) memberLocked(id, instance string) (*member, error) {
	if instance != "" {
		current, ok := g.static[instance]
		if !ok {
			return nil, ErrUnknownMember
		}
		if current != id {
			return nil, ErrFenced
		}
	}
	if m := g.members[id]; m != nil {
		return m, nil
	}
	return nil, ErrUnknownMember
}

// joinNewLocked takes a member without an id.
func (g *group) joinNewLocked(req *JoinRequest) (*waiter[JoinResult], JoinResult, error) {
	if req.InstanceID != "" {
		id := req.InstanceID + "-" + rand.Text()
		if old, ok := g.static[req.InstanceID]; ok {
			return g.replaceLocked(g.members[old], id, req)
		}
		return g.admitLocked(req, id)
	}
	id := req.ClientID + "-" + rand.Text()
	if !req.NeedsID {
		return g.admitLocked(req, id)
	}
	if len(g.members)+len(g.pending) >= maxMembers {
		return nil, JoinResult{}, ErrGroupFull
	}
	g.pending[id] = time.Now().Add(req.Session)
	g.hurryLocked()
	return nil, JoinResult{MemberID: id}, ErrMemberID
}

// admitLocked makes a new member, for which the group has to rebalance.
func (g *group) admitLocked(req *JoinRequest, id string) (*waiter[JoinResult], JoinResult, error) {
	if len(g.members) >= maxMembers {
		return nil, JoinResult{}, ErrGroupFull
	}
	m := &member{id: id, instance: req.InstanceID}
	m.describe(req)
	if len(g.members) == 0 {
		g.protocolType, g.leader = req.Type, ""
	}
	g.addLocked(m)
	g.company = true
	return g.awaitLocked(m), JoinResult{}, nil
}

// describe takes over what a member says of itself.
func (m *member) describe(req *JoinRequest) {
	m.client, m.host = req.ClientID, req.ClientHost
	m.session, m.rebalance = req.Session, req.rebalance()
	m.protocols = req.Protocols
}

// updateLocked takes over what a member says of itself when it joins again.
func (g *group) updateLocked(m *member, req *JoinRequest) {
	g.supportLocked(m, -1)
	m.describe(req)
	g.supportLocked(m, 1)
}

// awaitLocked makes the caller wait for the next generation.
func (g *group) awaitLocked(m *member) *waiter[JoinResult] {
	m.answerJoin(JoinResult{MemberID: m.id}, ErrRebalancing) // it asked twice
	w := newWaiter[JoinResult](m.id)
	m.join = w
	if now := time.Now(); g.phase == preparing {
		g.maybeJoinedLocked(now)
	} else {
		g.prepareLocked(now)
	}
	return w
}

// rejoinLocked takes a member that is known.
func (g *group) rejoinLocked(m *member, req *JoinRequest) (*waiter[JoinResult], JoinResult, error) {
	same := m.sameProtocols(req.Protocols)
	switch {
	case g.phase == completing && same, g.phase == stable && same && m.id != g.leader:
		// It did not get the answer, or did not know that nothing changes.
		m.heard()
		return nil, g.resultLocked(m), nil
	}
	g.updateLocked(m, req)
	return g.awaitLocked(m), JoinResult{}, nil
}

func (m *member) sameProtocols(protocols []Protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && string(a.Metadata) == string(b.Metadata)
	})
}

// resultLocked is the generation as a member sees it.
func (g *group) resultLocked(m *member) JoinResult {
	result := JoinResult{
		MemberID: m.id, Generation: g.number, Type: g.protocolType, Protocol: g.protocol,
		Leader: g.leader,
	}
	if m.id == g.leader {
		for _, other := range g.inOrderLocked() {
			result.Members = append(result.Members,
				JoinedMember{ID: other.id, InstanceID: other.instance, Metadata: other.metadata(g.protocol)})
		}
	}
	return result
}

// replaceLocked gives the place of a static member to a new process, and fences
// the old one. When it wants nothing else and the group is stable, nobody has to
// join again.
func (g *group) replaceLocked(old *member, id string, req *JoinRequest) (*waiter[JoinResult], JoinResult, error) {
	before := old.metadata(g.protocol)
	formerLeader := g.leader
	old.answerJoin(JoinResult{MemberID: old.id}, ErrFenced)
	old.answerSync(SyncResult{}, ErrFenced)

	delete(g.members, old.id)
	g.supportLocked(old, -1)
	m := &member{id: id, instance: old.instance, seq: old.seq, assignment: old.assignment, synced: old.synced}
	m.describe(req)
	g.members[id] = m
	g.static[m.instance] = id
	g.supportLocked(m, 1)
	if g.leader == old.id {
		g.leader = id
	}
	if g.phase != stable || string(before) != string(m.metadata(g.protocol)) || g.chooseLocked() != g.protocol {
		return g.awaitLocked(m), JoinResult{}, nil
	}
	m.heard()
	if err := g.storeLocked(); err != nil {
		return nil, JoinResult{}, err
	}
	result := g.resultLocked(m)
	if formerLeader == old.id {
		if req.MaySkip {
			result.SkipAssignment = true
		} else {
			// It must not think that it has to assign: the assignments stay.
			result.Leader, result.Members = formerLeader, nil
		}
	}
	return nil, result, nil
}
