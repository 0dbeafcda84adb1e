package groups

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/ops/quota"
	"freshet/internal/storage/engine"
)

// TypeShare is the type of share groups.
const TypeShare = "share"

// Limits of share groups (docs/spec/stream.md#limits).
const (
	maxShareMembers         = 5000    // members of a group
	maxShareMembersOfOne    = 1000    // members of a group that belong to one account
	maxShareTopics          = 100_000 // topics that the members of a group subscribe to, summed over the members
	maxShareTopicsOfAccount = 20_000  // the same for the members of one account
)

// shares are the share groups of a coordinator. Their members exist in memory only: a member whose coordinator
// restarts or moves joins again. What the members acknowledge belongs to the subscriptions of package messaging.
type shares struct {
	c *Coordinator

	mu     sync.Mutex
	closed bool
	groups map[Key]*shareGroup // groups with members
	timer  *time.Timer         // fires at the end of the first session; nil without members
}

// shareGroup is a share group with members.
type shareGroup struct {
	key     Key
	epoch   int32
	members map[string]*shareMember
}

// shareMember is a member of a share group.
type shareMember struct {
	id, client, host, rack string
	principal              string
	epoch, previousEpoch   int32
	names                  []string // subscribed topics as the member names them
	topics                 []ShareTopic
	revision               ShareRevision
	assigned               []Partition // sorted
	changed                bool        // the member does not know its assignment
	expires                time.Time
	bytes                  int64
}

// ShareTopic is a topic that a member of a share group subscribes to.
type ShareTopic struct {
	ID         engine.TopicID
	Name       names.Topic
	Partitions int32
}

// ShareRevision changes when the topics that a subscription means may change.
type ShareRevision struct{ Policy, Topics uint64 }

// ShareRequest is a heartbeat of a member of a share group. With it a member joins, stays and leaves.
type ShareRequest struct {
	MemberID             string
	Epoch                int32 // member epoch; 0 joins, -1 leaves
	ClientID, ClientHost string
	Rack                 string   // "" for none or unchanged
	Names                []string // subscribed topics; nil for unchanged
	Principal            string
	Revision             ShareRevision
	// Resolve returns the topics that exist of those that a member names, and prepares those that are not among
	// known. It may block.
	Resolve func(names []string, known []ShareTopic) ([]ShareTopic, error)
}

func (r *ShareRequest) check(key Key) error {
	size := len(r.MemberID) + len(r.ClientID) + len(r.Rack)
	for _, name := range r.Names {
		size += len(name)
	}
	switch {
	case key.Group == "" || len(key.Group) > maxGroupID:
		return ErrGroupID
	case r.MemberID == "":
		return fmt.Errorf("%w: member id is empty; generate one and keep it", ErrInvalidHeartbeat)
	case r.Epoch < epochLeave:
		return fmt.Errorf("%w: member epoch %d is out of range", ErrInvalidHeartbeat, r.Epoch)
	case r.Epoch == epochJoin && len(r.Names) == 0:
		return fmt.Errorf("%w: joining member must subscribe to topics", ErrInvalidHeartbeat)
	case len(r.Names) > maxSubscribedTopics || size > maxMemberBytes:
		return fmt.Errorf("%w: %d topics with %d bytes, at most %d with %d are allowed", ErrTooLarge, len(r.Names),
			size, maxSubscribedTopics, maxMemberBytes)
	}
	return nil
}

// ShareHeartbeat handles a heartbeat of a member of a share group.
func (c *Coordinator) ShareHeartbeat(key Key, req *ShareRequest) (ConsumerResult, error) {
	if err := req.check(key); err != nil {
		return ConsumerResult{}, err
	}
	s := &c.shares
	var found []ShareTopic
	for resolved := []string(nil); ; {
		s.mu.Lock()
		subscribed, known, err := s.subscriptionLocked(key, req)
		switch {
		case err != nil:
			s.mu.Unlock()
			return ConsumerResult{}, err
		case subscribed != nil && (resolved == nil || !slices.Equal(subscribed, resolved)):
			s.mu.Unlock() // resolving topics may block
			if found, err = req.Resolve(subscribed, known); err != nil {
				return ConsumerResult{}, err
			}
			resolved = subscribed
			continue
		}
		result, err := s.heartbeatLocked(key, req, resolved != nil, found)
		s.setTimerLocked()
		s.mu.Unlock()
		return result, err
	}
}

// subscriptionLocked checks the member of a request, and returns the names of topics to resolve; nil for none.
func (s *shares) subscriptionLocked(key Key, req *ShareRequest) (subscribed []string, known []ShareTopic, err error) {
	m, err := s.memberLocked(key, req)
	switch {
	case err != nil || req.Epoch == epochLeave:
		return nil, nil, err
	case m == nil:
		return req.Names, nil, nil
	case req.Names != nil && !slices.Equal(req.Names, m.names):
		return req.Names, m.topics, nil
	case m.revision != req.Revision:
		return m.names, m.topics, nil
	}
	return nil, nil, nil
}

// memberLocked returns the member of a request; nil for a new one.
func (s *shares) memberLocked(key Key, req *ShareRequest) (*shareMember, error) {
	if s.closed {
		return nil, ErrClosed
	}
	if s.c.shard(key).machine == nil {
		return nil, ErrNotCoordinator
	}
	var m *shareMember
	if g := s.groups[key]; g != nil {
		m = g.members[req.MemberID]
	}
	switch {
	case m != nil && m.principal != req.Principal, m == nil && req.Epoch != epochJoin:
		return nil, ErrUnknownMember
	case m != nil && req.Epoch > epochJoin && req.Epoch != m.epoch && req.Epoch != m.previousEpoch:
		return nil, fmt.Errorf("%w: request has epoch %d, member has %d", ErrFencedEpoch, req.Epoch, m.epoch)
	}
	return m, nil
}

// heartbeatLocked applies a heartbeat. found are the topics of the member's subscription if it was resolved.
func (s *shares) heartbeatLocked(key Key, req *ShareRequest, resolved bool,
	found []ShareTopic,
) (ConsumerResult, error) {
	g := s.groups[key]
	if req.Epoch == epochLeave {
		s.removeLocked(g, g.members[req.MemberID])
		return ConsumerResult{MemberID: req.MemberID, Epoch: epochLeave}, nil
	}
	if g == nil {
		g = &shareGroup{key: key, members: make(map[string]*shareMember)}
	}
	before := g.members[req.MemberID]
	m := &shareMember{id: req.MemberID, principal: req.Principal}
	if before != nil {
		*m = *before
	}
	m.client, m.host, m.rack = req.ClientID, req.ClientHost, cmp.Or(req.Rack, m.rack)
	if req.Names != nil {
		m.names = req.Names
	}
	if resolved {
		m.topics, m.revision = found, req.Revision
	}
	if err := s.admitLocked(g, m, before); err != nil {
		return ConsumerResult{}, err
	}
	g.members[m.id], s.groups[key] = m, g
	if before == nil || !slices.Equal(before.topics, m.topics) {
		g.assignLocked()
	}
	if req.Epoch != m.epoch {
		m.changed = true // it joins, or did not get the last response
	}
	m.expires = time.Now().Add(consumerSessionTimeout)
	result := ConsumerResult{MemberID: m.id, HeartbeatInterval: s.c.opts.HeartbeatInterval}
	if m.epoch != g.epoch {
		m.previousEpoch, m.epoch = m.epoch, g.epoch
	}
	result.Epoch = m.epoch
	if m.changed || req.Names != nil {
		m.changed, result.HasAssignment, result.Assignment = false, true, m.assigned
	}
	return result, nil
}

// admitLocked counts the bytes of a member that is new or has changed, unless a limit is reached.
func (s *shares) admitLocked(g *shareGroup, m, before *shareMember) error {
	if before == nil && len(g.members) == 0 && len(s.groups) >= maxGroups {
		return fmt.Errorf("%w: %d", ErrTooManyGroups, maxGroups)
	}
	m.bytes = memberOverhead + int64(len(m.id)+len(m.client)+len(m.host)+len(m.rack))
	for _, name := range m.names {
		m.bytes += int64(len(name)) + 16
	}
	if err := g.checkSize(m, before); err != nil {
		return err
	}
	m.bytes += int64(ownerTopicBytes * len(m.topics))
	more := m.bytes
	if before != nil {
		more -= before.bytes
	}
	if more > 0 && s.c.memberBytes.Load()+more > maxClusterBytes {
		return ErrGroupFull
	}
	payer := quota.Account{Tenant: g.key.Tenant, Name: m.principal}
	if err := s.c.opts.Quota.ReserveState(payer, more); err != nil {
		return fmt.Errorf("%w: %w", ErrGroupFull, err)
	}
	s.c.memberBytes.Add(more)
	return nil
}

// checkSize returns an error if the group would be too large with a member instead of its former state. One account
// cannot fill a group that others use too.
func (g *shareGroup) checkSize(m, before *shareMember) error {
	members, ofOne, topics, topicsOfOne, partitions := 1, 1, len(m.topics), len(m.topics), 0
	for _, other := range g.members {
		if other == before {
			continue
		}
		members++
		topics += len(other.topics)
		if other.principal == m.principal {
			ofOne++
			topicsOfOne += len(other.topics)
		}
	}
	for _, t := range m.topics {
		partitions += int(t.Partitions)
	}
	switch {
	case before == nil && (members > maxShareMembers || ofOne > maxShareMembersOfOne):
		return fmt.Errorf("%w: %d, of one account %d", ErrGroupFull, maxShareMembers, maxShareMembersOfOne)
	case topics > maxShareTopics || topicsOfOne > maxShareTopicsOfAccount || partitions > maxGroupPartitions:
		return fmt.Errorf("%w: the members of a share group may subscribe to %d topics, those of one account to %d, "+
			"and each member to %d partitions", ErrTooManyPartitions, maxShareTopics, maxShareTopicsOfAccount,
			maxGroupPartitions)
	}
	return nil
}

// removeLocked removes a member, and its group after the last one.
func (s *shares) removeLocked(g *shareGroup, m *shareMember) {
	delete(g.members, m.id)
	s.c.opts.Quota.AddState(quota.Account{Tenant: g.key.Tenant, Name: m.principal}, -m.bytes)
	s.c.memberBytes.Add(-m.bytes)
	if len(g.members) == 0 {
		delete(s.groups, g.key)
		return
	}
	g.assignLocked()
}

// assignLocked starts a new epoch of the group and distributes the partitions of each topic over the members that
// subscribe to it. With more members than partitions, several members have the same partition.
func (g *shareGroup) assignLocked() {
	g.epoch++
	subscribers := make(map[ShareTopic][]*shareMember)
	assigned := make(map[string][]Partition, len(g.members))
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		for _, t := range g.members[id].topics {
			subscribers[t] = append(subscribers[t], g.members[id])
		}
	}
	for t, members := range subscribers {
		for i := range max(int(t.Partitions), len(members)) {
			id := members[i%len(members)].id
			part := Partition{t.ID, int32(i) % t.Partitions} //nolint:gosec // at most maxGroupPartitions
			assigned[id] = append(assigned[id], part)
		}
	}
	for id, m := range g.members {
		parts := assigned[id]
		slices.SortFunc(parts, Partition.compare)
		if !slices.Equal(parts, m.assigned) {
			m.assigned, m.changed = parts, true
		}
	}
}

// setTimerLocked sets the timer to the end of the first session.
func (s *shares) setTimerLocked() {
	if len(s.groups) == 0 {
		if s.timer != nil {
			s.timer.Stop()
			s.timer = nil
		}
		return
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(consumerSessionTimeout, s.expire)
	}
}

// expire removes the members whose sessions have ended.
func (s *shares) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	next := now.Add(consumerSessionTimeout)
	for _, g := range s.groups {
		for _, m := range g.members {
			switch {
			case !m.expires.After(now):
				s.removeLocked(g, m)
			case m.expires.Before(next):
				next = m.expires
			}
		}
	}
	if s.timer = nil; len(s.groups) > 0 && !s.closed {
		s.timer = time.AfterFunc(max(time.Until(next), time.Second), s.expire)
	}
}

// drop removes the groups for which gone returns true.
func (s *shares) drop(gone func(Key) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, g := range s.groups {
		if !gone(key) {
			continue
		}
		for _, m := range g.members {
			s.removeLocked(g, m)
		}
	}
	s.setTimerLocked()
}

func (s *shares) close() {
	s.drop(func(Key) bool { return true })
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
}

// ShareDescription describes a share group with members.
type ShareDescription struct {
	Key     Key
	Epoch   int32
	Members []ShareMember
}

// ShareMember describes a member of a share group.
type ShareMember struct {
	ID, ClientID, ClientHost, Rack string
	Epoch                          int32
	Names                          []string
	Topics                         []ShareTopic
	Assigned                       []Partition
}

// DescribeShare returns a share group, or ErrNoGroup if it has no members.
func (c *Coordinator) DescribeShare(key Key) (ShareDescription, error) {
	s := &c.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[key]
	switch {
	case c.shard(key).machine == nil:
		return ShareDescription{}, ErrNotCoordinator
	case g == nil:
		return ShareDescription{}, ErrNoGroup
	}
	d := ShareDescription{Key: key, Epoch: g.epoch}
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[id]
		d.Members = append(d.Members, ShareMember{
			ID: m.id, ClientID: m.client, ClientHost: m.host, Rack: m.rack, Epoch: m.epoch, Names: m.names,
			Topics: m.topics, Assigned: m.assigned,
		})
	}
	return d, nil
}

// CheckNoShareMembers returns ErrNotEmpty if a share group has members.
func (c *Coordinator) CheckNoShareMembers(key Key) error {
	_, err := c.DescribeShare(key)
	switch {
	case err == nil:
		return ErrNotEmpty
	case errors.Is(err, ErrNoGroup):
		return nil
	}
	return err
}
