package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"freshet/internal/base/names"
)

// CommitRequest is a request to store offsets of a group.
type CommitRequest struct {
	MemberID   string
	InstanceID string
	// Generation is the generation or member epoch. A negative number means that the caller is not
	// a member, which is allowed only while the group has no members.
	Generation int32
	// SupportsMemberEpochs means that the version of the request supports member epochs. Without it,
	// Commit rejects members with the consumer protocol.
	SupportsMemberEpochs bool
	Offsets              map[Partition]Offset
	Caller               Caller
	Topics               []names.Topic // the topics of Offsets
}

// Commit stores offsets with the current time and returns once they are durable.
func (c *Coordinator) Commit(ctx context.Context, key Key, req *CommitRequest) error {
	if len(key.Group) > maxGroupID { // as in Kafka, offsets may be committed without a group id
		return ErrGroupID
	}
	if len(req.Offsets) > maxOffsets {
		return fmt.Errorf("%w: %d, at most %d are allowed", ErrTooManyOffsets, len(req.Offsets), maxOffsets)
	}
	for _, o := range req.Offsets {
		if len(o.Metadata) > maxOffsetMetadata {
			return ErrOffsetMetadata
		}
	}
	g, err := c.beginCommit(key, req)
	if err != nil || len(req.Offsets) == 0 {
		return err
	}
	if g != nil {
		defer g.endCommit(req)
	}
	s := c.shard(key)
	if s.machine == nil {
		return ErrNotCoordinator
	}
	release, err := c.reserve(key.Tenant, req.Caller.Principal, s.view().growth(key, req.Offsets))
	if err != nil {
		return err
	}
	defer release()
	now := time.Now().UnixMilli()
	w := offsetsRecord(key, req.Caller.Principal, len(req.Offsets))
	for at, o := range req.Offsets {
		o.Time = now
		w.offset(at, o)
	}
	return s.updateContext(ctx, func(st *state) ([][]byte, error) {
		if _, ok := st.groups.Get(key.path()); !ok && c.countGroups() >= maxGroups {
			return nil, ErrTooManyGroups
		}
		return [][]byte{w.Writer}, nil
	})
}

// beginCommit returns an error unless the caller may commit for the group. Until endCommit the group reads the
// topics of the commit, so that callers who may not consume them cannot join it or commit for it. It returns nil
// if the commit adds no topics.
func (c *Coordinator) beginCommit(key Key, req *CommitRequest) (*group, error) {
	g, err := c.shard(key).lock(key, req.Generation < 0)
	switch {
	case errors.Is(err, ErrNoGroup) && !req.SupportsMemberEpochs:
		return nil, ErrGeneration
	case err != nil:
		return nil, err
	}
	defer g.unlock()
	if err := g.mayCommitLocked(req); err != nil || !g.addsTopicsLocked(req) {
		return nil, err
	}
	count(g.committing, req.Topics, 1)
	g.writesInProgress++
	return g, nil
}

// addsTopicsLocked reports whether a commit is for topics that no member subscribes to.
func (g *group) addsTopicsLocked(req *CommitRequest) bool {
	subscribed := g.reading.topics
	if g.consumers != nil {
		subscribed = g.consumers.reading.topics
	}
	return slices.ContainsFunc(req.Topics, func(topic names.Topic) bool { return subscribed[topic] == 0 })
}

// endCommit ends a commit after it was written, or was not.
func (g *group) endCommit(req *CommitRequest) {
	g.mu.Lock()
	count(g.committing, req.Topics, -1)
	g.writesInProgress--
	g.unlock()
}

// mayCommitLocked returns an error unless the caller may commit for the group.
func (g *group) mayCommitLocked(req *CommitRequest) error {
	var err error
	if req.Generation < 0 {
		err = g.mayUseLocked(&req.Caller, nil)
	} else {
		err = g.admitLocked(&req.Caller, req.MemberID)
	}
	if err != nil {
		return err
	}
	switch o := g.ownerLocked(req.MemberID); {
	case o != nil && !o.belongsTo(&req.Caller):
		return ErrUnknownMember
	case req.Generation < 0 && !g.occupiedLocked():
		return nil
	case g.consumers != nil:
		return g.consumers.mayCommit(req)
	case req.Generation < 0 && req.MemberID == "" && req.InstanceID == "":
		return ErrUnknownMember
	}
	m, err := g.memberLocked(req.MemberID, req.InstanceID)
	if err == nil && req.Generation != g.number {
		err = ErrGeneration
	}
	if err != nil {
		return err
	}
	m.renewSession()
	if g.phase == completing {
		return ErrRebalancing
	}
	return nil
}

// mayCommit returns an error unless a member with the consumer protocol may commit. The member may
// still be at an older epoch if it had the committed partitions in that epoch.
func (cs *consumers) mayCommit(req *CommitRequest) error {
	m := cs.members[req.MemberID]
	switch {
	case m == nil:
		return ErrUnknownMember
	case m.classic != nil && req.Generation != m.epoch:
		return ErrGeneration
	case m.classic == nil && !req.SupportsMemberEpochs:
		return ErrCommitVersion
	case req.Generation == m.epoch:
		return nil
	case req.Generation > m.epoch:
		return ErrStaleEpoch
	}
	for p := range req.Offsets {
		since, ok := m.assigned[p]
		if !ok {
			since, ok = m.pendingRevocation[p]
		}
		if !ok || since > req.Generation {
			return ErrStaleEpoch
		}
	}
	return nil
}

// CheckMember returns an error unless the caller, who reads offsets as a member, still is that member.
// Groups with the classic protocol check only that the member is not another principal's.
func (c *Coordinator) CheckMember(key Key, caller Caller, id string, epoch int32) error {
	g, err := c.shard(key).lock(key, false)
	if errors.Is(err, ErrNoGroup) {
		return nil // the group has no offsets
	}
	if err != nil {
		return err
	}
	defer g.unlock()
	if o := g.ownerLocked(id); o != nil && !o.belongsTo(&caller) {
		return ErrUnknownMember
	}
	if g.consumers == nil {
		return nil
	}
	switch m := g.consumers.members[id]; {
	case m == nil:
		return ErrUnknownMember
	case m.epoch != epoch:
		return ErrStaleEpoch
	}
	return nil
}

// Committed is a snapshot of the committed offsets of a group. Later commits, and a change of the
// journal's owner, do not change it.
type Committed struct {
	key  Key
	view *state
}

// Committed returns the committed offsets of a group. It returns ErrNotCoordinator when another
// member coordinates the group: with an empty result consumers would start from the beginning.
func (c *Coordinator) Committed(key Key) (Committed, error) {
	s := c.shard(key)
	if s.machine == nil {
		return Committed{}, ErrNotCoordinator
	}
	return Committed{key: key, view: s.machine.View()}, nil
}

// Offset returns the committed offset of a partition.
func (o Committed) Offset(at Partition) (Offset, bool) {
	item, ok := o.view.offsets.Get(offsetItem{key: o.key, at: at})
	return item.Offset, ok
}

// Each calls visit for all committed offsets in order.
func (o Committed) Each(visit func(Partition, Offset)) { o.view.eachOffset(o.key, visit) }

// Topics returns the topics with committed offsets in order.
func (o Committed) Topics() (topics []uint64) {
	for _, id := range o.view.committedTopics(nil, o.key) {
		topics = append(topics, uint64(id))
	}
	return topics
}

// EachCommittedOffset calls visit for the offsets that the groups of a tenant have committed for a topic, group
// by group.
func (c *Coordinator) EachCommittedOffset(tenant string, topic uint64, visit func(Key, Partition, Offset)) {
	from := PartitionOf(topic, 0)
	for _, s := range c.ownedShards() {
		view := s.view()
		view.groups.Ascend(Key{Tenant: tenant}.path(), func(_ string, item groupItem) bool {
			if item.key.Tenant != tenant {
				return false
			}
			if item.offsets == 0 {
				return true
			}
			view.offsets.Ascend(offsetItem{key: item.key, at: from}, func(o offsetItem) bool {
				if o.key != item.key || o.at.Topic != from.Topic {
					return false
				}
				visit(o.key, o.at, o.Offset)
				return true
			})
			return true
		})
	}
}

// DeleteOffsets deletes committed offsets of a group and returns once that is durable. may returns an error
// unless the caller may delete offsets of a group that has committed offsets for these topics; nil allows it.
func (c *Coordinator) DeleteOffsets(ctx context.Context, key Key, gone []Partition, may func(Reads) error) error {
	if len(gone) > maxOffsets {
		return fmt.Errorf("%w: %d, at most %d are allowed", ErrTooManyOffsets, len(gone), maxOffsets)
	}
	w := newRecord(recordDeleteOffsets, key)
	w.Uvarint(uint64(len(gone)))
	for _, at := range gone {
		w.Uvarint(uint64(at.Topic))
		w.Varint(int64(at.Partition))
	}
	err := c.shard(key).updateContext(ctx, func(s *state) ([][]byte, error) {
		if _, ok := s.groups.Get(key.path()); !ok {
			return nil, ErrNoGroup
		}
		if err := s.may(key, may); err != nil {
			return nil, err
		}
		return [][]byte{w.Writer}, nil
	})
	return err
}

// may returns the error of a check of the topics for which a group has committed offsets; nil allows all.
func (s *state) may(key Key, check func(Reads) error) error {
	if check == nil {
		return nil
	}
	return check(Reads{IDs: s.committedTopics(nil, key)})
}
