package groups

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// CommitRequest is a request to store offsets of a group.
type CommitRequest struct {
	MemberID   string
	InstanceID string
	// Generation is the generation or member epoch. A negative number means that the caller is not
	// a member, which is allowed only while the group has no members.
	Generation int32
	// Account is the principal whose quota the offsets count towards; "" when it is not known.
	Account string
	// SupportsMemberEpochs means that the version of the request supports member epochs. Without it,
	// Commit rejects members with the consumer protocol.
	SupportsMemberEpochs bool
	Offsets              map[Partition]Offset
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
	if err := c.mayCommit(key, req); err != nil || len(req.Offsets) == 0 {
		return err
	}
	s := c.shard(key)
	if s.machine == nil {
		return ErrNotCoordinator
	}
	release, err := c.reserve(key.Tenant, req.Account, s.view().growth(key, req.Offsets))
	if err != nil {
		return err
	}
	defer release()
	now := time.Now().UnixMilli()
	w := offsetsRecord(key, req.Account, len(req.Offsets))
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

// mayCommit returns an error unless the caller may commit for the group.
func (c *Coordinator) mayCommit(key Key, req *CommitRequest) error {
	g, err := c.shard(key).lock(key, false)
	switch {
	case errors.Is(err, ErrNoGroup) && req.Generation < 0:
		return nil
	case errors.Is(err, ErrNoGroup) && !req.SupportsMemberEpochs:
		return ErrGeneration
	case err != nil:
		return err
	}
	defer g.unlock()
	switch {
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

// CheckMember returns an error unless the caller, who reads offsets as a member, still is a member.
// Groups with the classic protocol do not check that.
func (c *Coordinator) CheckMember(key Key, id string, epoch int32) error {
	g, err := c.shard(key).lock(key, false)
	if errors.Is(err, ErrNoGroup) {
		return nil // the group has no offsets
	}
	if err != nil {
		return err
	}
	defer g.unlock()
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
	o.Each(func(at Partition, _ Offset) {
		if id := uint64(at.Topic); len(topics) == 0 || topics[len(topics)-1] != id {
			topics = append(topics, id)
		}
	})
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

// DeleteOffsets deletes committed offsets of a group and returns once that is durable.
func (c *Coordinator) DeleteOffsets(ctx context.Context, key Key, gone []Partition) error {
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
		return [][]byte{w.Writer}, nil
	})
	return err
}
