package groups

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
)

// Description describes a group for administrators.
type Description struct {
	Key          Key
	Type         string // TypeClassic or TypeConsumer
	State        string // Kafka's name of the state
	ProtocolType string
	Protocol     string // "" unless stable; the assignor with the consumer protocol
	Generation   int32  // the group epoch with the consumer protocol
	Leader       string
	Members      []Member
	// AssignmentEpoch is the epoch of the target assignments; consumer protocol only.
	AssignmentEpoch int32
	Reads           Reads // what the group reads at the time of the description
}

// The types of groups.
const (
	TypeClassic  = "classic"
	TypeConsumer = "consumer"
)

// protocolConsumer is the protocol type of consumers.
const protocolConsumer = "consumer"

// Member describes a member for administrators.
type Member struct {
	ID         string
	Static     bool
	InstanceID string // of a static member
	ClientID   string
	ClientHost string
	Metadata   []byte // metadata for the chosen protocol; nil unless stable
	Assignment []byte // nil unless stable

	Consumer *ConsumerMember // only with the consumer protocol
}

// ConsumerMember describes the part of a member that only the consumer protocol has.
type ConsumerMember struct {
	Classic  bool // the member uses the classic protocol
	Rack     string
	Epoch    int32
	Names    []string         // subscribed topics as the member names them
	Pattern  string           // regular expression of subscribed topics; "" for none
	Topics   []engine.TopicID // topics of the subscription
	Assigned []Partition
	Target   []Partition
}

// Describe returns a group, or ErrNoGroup.
func (c *Coordinator) Describe(key Key) (Description, error) {
	g, err := c.shard(key).lock(key, false)
	if err != nil {
		return Description{}, err
	}
	defer g.unlock()
	if g.consumers != nil {
		return g.describeConsumersLocked(), nil
	}
	d := Description{
		Key: key, Type: TypeClassic, State: g.phase.String(), ProtocolType: g.protocolType,
		Generation: g.number, Leader: g.leader, Reads: g.readsLocked(nil),
	}
	if g.phase == stable {
		d.Protocol = g.protocol
	}
	for _, m := range g.inOrderLocked() {
		member := Member{
			ID: m.id, Static: m.instance != "", InstanceID: shownInstance(m.instance), ClientID: m.client,
			ClientHost: m.host,
		}
		if g.phase == stable {
			member.Metadata, member.Assignment = m.metadata(g.protocol), m.assignment
		}
		d.Members = append(d.Members, member)
	}
	return d, nil
}

func (g *group) describeConsumersLocked() Description {
	cs := g.consumers
	d := Description{
		Key: g.key, Type: TypeConsumer, State: g.consumersStateLocked(), ProtocolType: protocolConsumer,
		Protocol: cs.assignor, Generation: g.number, AssignmentEpoch: cs.assignmentEpoch, Reads: g.readsLocked(nil),
	}
	for _, m := range cs.inOrder() {
		d.Members = append(d.Members, Member{
			ID: m.id, Static: m.instance != "", InstanceID: shownInstance(m.instance), ClientID: m.client,
			ClientHost: m.host,
			Consumer: &ConsumerMember{
				Classic: m.classic != nil, Rack: m.rack, Epoch: m.epoch,
				Names: m.names, Pattern: m.pattern, Topics: m.topics,
				Assigned: sortedPartitions(m.assigned), Target: slices.Clone(m.target),
			},
		})
	}
	return d
}

// Metadata returns a group's protocol type and the metadata of its members for every protocol that
// they support.
func (c *Coordinator) Metadata(key Key) (protocolType string, all [][]byte, err error) {
	g, err := c.shard(key).lock(key, false)
	if err != nil {
		return "", nil, err
	}
	defer g.unlock()
	if g.consumers != nil && len(g.consumers.members) > 0 {
		return protocolConsumer, [][]byte{nil}, nil // these members have no metadata that lists their topics
	}
	for _, m := range g.members {
		for i := range m.protocols {
			all = append(all, m.protocols[i].Metadata)
		}
	}
	return g.protocolType, all, nil
}

// Summary is one entry of a list of groups.
type Summary struct {
	Key          Key
	Type         string // TypeClassic or TypeConsumer
	State        string
	ProtocolType string
}

// List returns the groups of a tenant in order.
func (c *Coordinator) List(tenant string) []Summary {
	found := make(map[Key]bool)
	for _, s := range c.ownedShards() {
		s.view().groups.Ascend(Key{Tenant: tenant}.path(), func(_ string, item groupItem) bool {
			if item.key.Tenant != tenant {
				return false
			}
			found[item.key] = true
			return true
		})
		s.mu.Lock()
		for key := range s.groups {
			if key.Tenant == tenant {
				found[key] = true
			}
		}
		s.mu.Unlock()
	}
	all := make([]Summary, 0, len(found))
	for key := range found {
		if g, err := c.shard(key).lock(key, false); err == nil {
			line := Summary{Key: key, Type: TypeClassic, State: g.phase.String(), ProtocolType: g.protocolType}
			if g.consumers != nil {
				line.Type, line.State, line.ProtocolType = TypeConsumer, g.consumersStateLocked(), protocolConsumer
			}
			all = append(all, line)
			g.unlock()
		}
	}
	slices.SortFunc(all, func(a, b Summary) int { return a.Key.compare(b.Key) })
	return all
}

// GroupUsage describes the use of a stored group.
type GroupUsage struct {
	Key     Key
	Type    string // TypeClassic or TypeConsumer
	Members int
	Offsets int // number of committed partitions
}

// Walk calls visit for the stored groups until visit returns false. It never blocks and sees the
// last durable state.
func (c *Coordinator) Walk(visit func(GroupUsage) bool) {
	more := true
	for _, s := range c.ownedShards() {
		s.view().groups.Scan(func(_ string, item groupItem) bool {
			use := GroupUsage{
				Key: item.key, Type: TypeClassic, Members: len(item.stored.members),
				Offsets: item.offsets,
			}
			if item.stored.consumers != nil {
				use.Type, use.Members = TypeConsumer, item.consumers
			}
			more = visit(use)
			return more
		})
		if !more {
			return
		}
	}
}

// Lag returns the number of messages of a partition at and after a committed offset.
func Lag(first, next uint64, offset int64) uint64 {
	at := max(first, uint64(max(offset, 0)))
	return next - min(at, next)
}

// Delete deletes a group without members and its offsets, and returns once that is durable. may returns an error
// unless the caller may delete a group that reads these topics; nil allows it.
func (c *Coordinator) Delete(ctx context.Context, key Key, may func(Reads) error) error {
	s := c.shard(key)
	g, err := s.lock(key, false)
	if err != nil {
		return err
	}
	busy := g.occupiedLocked() || len(g.pending) > 0
	err = g.mayUseLocked(&Caller{May: may}, nil)
	g.unlock()
	if err != nil {
		return err
	}
	if busy {
		return ErrNotEmpty
	}
	return s.deleteGroup(ctx, key, func(st *state, item groupItem) error {
		if item.occupied() {
			return ErrNotEmpty
		}
		return st.may(key, may)
	})
}

// deleteGroup deletes a stored group unless may returns an error.
func (s *shard) deleteGroup(ctx context.Context, key Key, may func(*state, groupItem) error) error {
	_, err := s.machine.UpdateWhenDiskFull(ctx, func(st *state) ([][]byte, error) {
		item, ok := st.groups.Get(key.path())
		if !ok {
			return nil, ErrNoGroup
		}
		if err := may(st, item); err != nil {
			return nil, err
		}
		return [][]byte{newRecord(recordDeleteGroup, key).Writer}, nil
	})
	return err
}

var errInUse = errors.New("group is in use")

// sweepLoop deletes groups that were not used for offsetRetention.
func (c *Coordinator) sweepLoop() {
	for range retry.Every(c.ctx, sweepInterval) {
		c.deleteExpired(time.Now())
	}
}

func (c *Coordinator) deleteExpired(now time.Time) {
	before := now.Add(-offsetRetention).UnixMilli()
	expired := func(item groupItem) error {
		if item.occupied() || item.stored.emptySince > before {
			return errInUse
		}
		return nil
	}
	for _, s := range c.ownedShards() {
		var old []Key
		s.view().groups.Scan(func(_ string, item groupItem) bool {
			if expired(item) == nil {
				old = append(old, item.key)
			}
			return true
		})
		for _, key := range old {
			s.mu.Lock()
			used := s.groups[key] != nil
			s.mu.Unlock()
			if used {
				continue
			}
			unused := func(_ *state, item groupItem) error { return expired(item) }
			if err := s.deleteGroup(c.ctx, key, unused); err != nil && !errors.Is(err, errInUse) &&
				c.ctx.Err() == nil {
				c.log.LogAttrs(c.ctx, slog.LevelWarn, "deleting an expired consumer group failed; retrying later",
					slog.String("group", key.Group), slog.Any("error", err))
			}
		}
	}
}
