package groups

import (
	"errors"
	"maps"
	"slices"

	"freshet/internal/base/names"
	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// Caller is the principal that makes a request. The zero Caller is the server itself, which may use every
// group and every member id.
type Caller struct {
	// Principal identifies the caller. A member belongs to the principal that joined with it: for other
	// principals its id is unknown. What the caller creates counts towards the quota of this account.
	Principal string
	// May returns ErrDenied unless the caller may use a group that reads these topics; nil allows all groups.
	// It is called with the group's mutex held and must not block. The coordinator returns other errors
	// unchanged, so that the caller can collect missing information and try again.
	May func(Reads) error
}

// Reads is what a group reads: the topics of its members, of its committed offsets and of commits in progress.
// The permission to use the group depends on it.
type Reads struct {
	Topics []names.Topic    `json:"topics,omitempty"` // topics that members subscribe to
	IDs    []engine.TopicID `json:"ids,omitempty"`    // topics with committed offsets
	// Names are subscriptions, as the members wrote them, that an earlier version of the server has stored.
	Names []string `json:"names,omitempty"`
	// Unknown is set if the coordinator cannot find out the topics of a member, for example in groups of Kafka
	// Connect.
	Unknown bool `json:"unknown,omitempty"`
}

// None reports whether the group reads nothing that is known, as a group that does not exist.
func (r *Reads) None() bool {
	return len(r.Topics) == 0 && len(r.IDs) == 0 && len(r.Names) == 0 && !r.Unknown
}

// Union returns what two groups read together, or one group at two times.
func (r *Reads) Union(other Reads) Reads {
	return Reads{
		Topics: slices.Concat(r.Topics, other.Topics), IDs: slices.Concat(r.IDs, other.IDs),
		Names: slices.Concat(r.Names, other.Names), Unknown: r.Unknown || other.Unknown,
	}
}

// owner is the principal of a member, which pays for it, and what the member subscribes to. It is immutable.
type owner struct {
	principal string // "" if an earlier version of the server stored the member
	topics    []names.Topic
	unknown   bool // the coordinator cannot find out the topics

	// names and ids are set instead of topics if an earlier version of the server stored the member.
	names []string
	ids   []engine.TopicID
}

// ownerTopicBytes estimates the memory of one topic of a member.
const ownerTopicBytes = 128

func (o *owner) size() int { return ownerTopicBytes * len(o.topics) }

// equal reports whether two owners are stored in the same way: without a principal nothing is stored.
func (o *owner) equal(other *owner) bool {
	return o.principal == other.principal &&
		(o.principal == "" || o.unknown == other.unknown && slices.Equal(o.topics, other.topics))
}

// belongsTo reports whether a caller may use the member's id. The first caller who uses the id of a member
// that an earlier version stored becomes its owner.
func (o *owner) belongsTo(caller *Caller) bool {
	return caller.Principal == "" || o.principal == "" || o.principal == caller.Principal
}

// reading counts how many members read each topic.
type reading struct {
	topics  map[names.Topic]int
	names   map[string]int
	ids     map[engine.TopicID]int
	unknown int
}

func newReading() reading {
	return reading{
		topics: make(map[names.Topic]int), names: make(map[string]int), ids: make(map[engine.TopicID]int),
	}
}

// add adds (by = 1) or removes (by = -1) what a member reads.
func (r *reading) add(o *owner, by int) {
	count(r.topics, o.topics, by)
	count(r.names, o.names, by)
	count(r.ids, o.ids, by)
	if o.unknown {
		r.unknown += by
	}
}

func count[K comparable](counts map[K]int, keys []K, by int) {
	for _, key := range keys {
		if counts[key] += by; counts[key] == 0 {
			delete(counts, key)
		}
	}
}

// ownerLocked returns the owner of a member, or of a member id that was returned with ErrMemberIDRequired; nil if
// there is no such member.
func (g *group) ownerLocked(id string) *owner {
	if g.consumers != nil {
		if m := g.consumers.members[id]; m != nil {
			return &m.owner
		}
		return nil
	}
	if m := g.members[id]; m != nil {
		return &m.owner
	}
	if p, ok := g.pending[id]; ok {
		return &owner{principal: p.principal}
	}
	return nil
}

// readsLocked returns what the group reads, without what one member reads; nil for none.
func (g *group) readsLocked(without *owner) Reads {
	of := &g.reading
	if g.consumers != nil {
		of = &g.consumers.reading
	}
	if without != nil {
		of.add(without, -1)
		defer of.add(without, 1)
	}
	reads := Reads{
		Topics: slices.Collect(maps.Keys(of.topics)), Names: slices.Collect(maps.Keys(of.names)),
		IDs: slices.Collect(maps.Keys(of.ids)), Unknown: of.unknown > 0,
	}
	for topic := range g.committing {
		reads.Topics = append(reads.Topics, topic)
	}
	if s := g.shard; s.machine != nil {
		reads.IDs = s.view().committedTopics(reads.IDs, g.key)
	}
	return reads
}

// mayUseLocked returns an error unless the caller may use the group. without is a member of the caller that
// changes its subscription; nil for none.
func (g *group) mayUseLocked(caller *Caller, without *owner) error {
	if caller.May == nil {
		return nil
	}
	return caller.May(g.readsLocked(without))
}

// admitLocked returns an error unless the caller may act as a member. For other principals the member is
// unknown, whether they may use the group or not.
func (g *group) admitLocked(caller *Caller, id string) error {
	o := g.ownerLocked(id)
	if o != nil && o.belongsTo(caller) {
		if err := g.mayUseLocked(caller, nil); err != nil {
			return err
		}
		g.bindLocked(id, caller)
		return nil
	}
	switch err := g.mayUseLocked(caller, nil); {
	case o != nil || errors.Is(err, ErrDenied):
		return ErrUnknownMember
	default:
		return err // the following lookup returns why there is no such member
	}
}

// bindLocked makes the caller the owner of a member that an earlier version of the server stored.
func (g *group) bindLocked(id string, caller *Caller) {
	if g.consumers != nil {
		if m := g.consumers.members[id]; m != nil && m.owner.principal == "" {
			g.consumers.countBytes(m, -1)
			m.owner.principal = caller.Principal
			g.consumers.countBytes(m, 1)
		}
	} else if m := g.members[id]; m != nil && m.owner.principal == "" {
		g.countProtocolsLocked(m, -1)
		m.owner.principal = caller.Principal
		g.countProtocolsLocked(m, 1)
	}
}

// Reads returns what a group reads; nothing for a group that does not exist.
func (c *Coordinator) Reads(key Key) (Reads, error) {
	_, reads, err := c.CommittedAndReads(key)
	return reads, err
}

// CommittedAndReads returns the committed offsets of a group and what the group reads. The topics of the offsets
// are among those that the group reads.
func (c *Coordinator) CommittedAndReads(key Key) (Committed, Reads, error) {
	g, err := c.shard(key).lock(key, false)
	if errors.Is(err, ErrNoGroup) {
		committed, err := c.Committed(key)
		if err != nil {
			return Committed{}, Reads{}, err
		}
		return committed, Reads{IDs: committed.view.committedTopics(nil, key)}, nil
	}
	if err != nil {
		return Committed{}, Reads{}, err
	}
	defer g.unlock()
	committed := Committed{key: key, view: g.shard.view()}
	reads := g.readsLocked(nil)
	reads.IDs = committed.view.committedTopics(reads.IDs, key)
	slices.Sort(reads.IDs)
	reads.IDs = slices.Compact(reads.IDs)
	return committed, reads, nil
}

// committedTopics appends the topics for which a group has committed offsets. It visits one offset of each topic.
func (s *state) committedTopics(ids []engine.TopicID, key Key) []engine.TopicID {
	next, more := engine.TopicID(0), true
	for more {
		more = false
		s.offsets.Ascend(offsetItem{key: key, at: Partition{Topic: next}}, func(item offsetItem) bool {
			if item.key == key {
				ids = append(ids, item.at.Topic)
				next, more = item.at.Topic+1, item.at.Topic+1 != 0
			}
			return false
		})
	}
	return ids
}

// earlierOwner returns the owner of a classic member that an earlier version of the server stored.
func earlierOwner(protocolType string, metadata []byte) owner {
	if protocolType == protocolConsumer {
		if topics, ok := consumerSubscription(metadata); ok {
			return owner{names: topics}
		}
	}
	return owner{unknown: true}
}

// consumerSubscription decodes the topics in the metadata of a classic consumer.
func consumerSubscription(metadata []byte) (topics []string, ok bool) {
	r := wire.NewReader(metadata)
	r.Skip(2) // version
	for range arrayLength(&r, 2) {
		topics = append(topics, string(r.Bytes(int(r.Int16()))))
	}
	return topics, r.Err() == nil
}

// owner appends the owner of a member.
func (w *writer) owner(o *owner) {
	principal := o.principal
	if len(o.names)+len(o.ids) > 0 {
		principal = "" // so that the topics are derived again after a restart
	}
	w.Text(principal)
	unknown := uint64(0)
	if o.unknown {
		unknown = 1
	}
	w.Uvarint(unknown)
	w.Uvarint(uint64(len(o.topics)))
	for _, topic := range o.topics {
		w.Text(topic.Namespace.Tenant)
		w.Text(topic.Namespace.Name)
		w.Text(topic.Local)
	}
}

func (r *reader) owner() owner {
	o := owner{principal: r.Text(), unknown: r.Uvarint() > 0}
	for range r.Count() {
		o.topics = append(o.topics,
			names.Topic{Namespace: names.Namespace{Tenant: r.Text(), Name: r.Text()}, Local: r.Text()})
	}
	return o
}
