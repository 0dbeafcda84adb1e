package groups

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tidwall/btree"

	"freshet/internal/base/framing"
	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// Key identifies a group. Groups belong to a tenant.
type Key struct {
	Tenant string
	Group  string
}

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Tenant, other.Tenant), cmp.Compare(k.Group, other.Group))
}

// Partition is one partition of a topic's incarnation.
type Partition struct {
	Topic     engine.TopicID
	Partition int32
}

// PartitionOf returns a partition of a topic by the topic's incarnation number.
func PartitionOf(topic uint64, partition int32) Partition {
	return Partition{Topic: engine.TopicID(topic), Partition: partition}
}

// Offset is a committed offset.
type Offset struct {
	Offset      int64
	LeaderEpoch int32 // -1 for none
	Metadata    string
	Time        int64 // time of the commit, epoch milliseconds
}

// generation is the stored form of a group. It is immutable.
type generation struct {
	number       int32
	protocolType string
	protocol     string
	leader       string
	members      []storedMember
	emptySince   int64 // epoch milliseconds; 0 while the group has members
	// consumers is set in a group with the consumer protocol instead of protocols, leader and
	// members. Its members are in state.consumers, and number is the group epoch.
	consumers *consumersHeader
}

type storedMember struct {
	id, instance, client, host     string
	sessionMillis, rebalanceMillis int64
	metadata, assignment           []byte
	owner                          owner
}

// state is the state of one shard's state machine.
type state struct {
	groups    *btree.Map[string, groupItem] // by path
	offsets   *btree.BTreeG[offsetItem]
	consumers *btree.BTreeG[consumerItem]
	usage     usage
}

type consumerItem struct {
	key Key
	id  string
	*storedConsumer
}

func compareConsumers(a, b consumerItem) bool {
	return cmp.Or(a.key.compare(b.key), cmp.Compare(a.id, b.id)) < 0
}

type groupItem struct {
	key       Key
	stored    *generation
	offsets   int // number of committed partitions
	consumers int // number of members with the consumer protocol
	account   string
}

// occupied reports whether the group has members.
func (i *groupItem) occupied() bool { return len(i.stored.members) > 0 || i.consumers > 0 }

type offsetItem struct {
	key Key
	at  Partition
	Offset
	account string
}

func compareOffsets(a, b offsetItem) bool {
	return cmp.Or(a.key.compare(b.key), cmp.Compare(a.at.Topic, b.at.Topic),
		cmp.Compare(a.at.Partition, b.at.Partition)) < 0
}

// path returns the key as one string. Tenant names cannot contain NUL.
func (k Key) path() string { return k.Tenant + "\x00" + k.Group }

func newState() *state {
	return &state{
		groups:    new(btree.Map[string, groupItem]),
		offsets:   btree.NewBTreeGOptions(compareOffsets, btree.Options{NoLocks: true}),
		consumers: btree.NewBTreeGOptions(compareConsumers, btree.Options{NoLocks: true}),
		usage:     newUsage(),
	}
}

// Clone implements statemachine.State.
func (s *state) Clone() *state {
	return &state{
		groups: s.groups.Copy(), offsets: s.offsets.Copy(), consumers: s.consumers.Copy(), usage: s.usage.clone(),
	}
}

// Apply implements statemachine.State.
func (s *state) Apply(_ uint64, record []byte) error {
	if len(record) == 0 {
		return fmt.Errorf("%w: empty record", engine.ErrCorrupt)
	}
	r := &reader{wire.NewReader(record[1:])}
	key := r.key()
	switch kind := recordKind(record[0]); kind {
	case recordOffsets:
		s.applyOffsets(key, "", r)
	case recordAccountOffsets:
		s.applyOffsets(key, r.Text(), r)
	case recordPayer:
		s.applyPayer(key, r)
	case recordGeneration:
		s.applyGeneration(key, r.generation())
	case recordOwnedGeneration:
		g := r.generation()
		for i := range g.members {
			g.members[i].owner = r.owner()
		}
		s.applyGeneration(key, g)
	case recordEmpty:
		since, number := r.Varint(), r.int32()
		s.dropConsumers(key)
		s.update(key, func(item *groupItem) {
			item.stored, item.consumers = &generation{
				number: number, protocolType: item.stored.protocolType,
				emptySince: since,
			}, 0
		})
	case recordConsumers:
		head, gone, put := r.consumers()
		s.applyConsumers(key, head, gone, put)
	case recordMixedConsumers:
		head, gone, put := r.consumers()
		for _, m := range put {
			m.classic = r.classic()
		}
		s.applyConsumers(key, head, gone, put)
	case recordOwnedConsumers:
		head, gone, put := r.consumers()
		for _, m := range put {
			m.classic, m.owner = r.classic(), r.owner()
		}
		s.applyConsumers(key, head, gone, put)
	case recordDeleteGroup:
		s.dropConsumers(key)
		s.deleteOffsets(key, s.committed(key))
		if item, ok := s.groups.Delete(key.path()); ok {
			s.usage.add(key.Tenant, item.account, -key.size())
		}
	case recordDeleteOffsets:
		gone := make([]Partition, r.Count())
		for i := range gone {
			gone[i] = r.partition()
		}
		s.deleteOffsets(key, gone)
	default:
		return fmt.Errorf("%w: consumer group record of kind %d", engine.ErrNewerFormat, kind)
	}
	return r.checkEnd()
}

// update replaces a group by a modified copy. A new group has no members.
func (s *state) update(key Key, change func(*groupItem)) {
	item, ok := s.groups.Get(key.path())
	if !ok {
		item = groupItem{key: key, stored: &generation{}}
		s.usage.add(key.Tenant, "", key.size())
	}
	payer := item.account
	change(&item)
	if item.account != payer {
		s.usage.add(key.Tenant, payer, -key.size())
		s.usage.add(key.Tenant, item.account, key.size())
	}
	s.groups.Set(key.path(), item)
}

func (s *state) applyOffsets(key Key, account string, r *reader) {
	added := 0
	var newest, bytes int64
	for range r.Count() {
		at, offset := r.offset()
		switch old, replaced := s.offsets.Set(offsetItem{key, at, offset, account}); {
		case !replaced:
			added++
		case old.account == account:
			bytes -= old.size()
		default:
			s.usage.add(key.Tenant, old.account, -old.size())
		}
		bytes += offset.size()
		newest = max(newest, offset.Time)
	}
	s.usage.add(key.Tenant, account, bytes)
	s.update(key, func(item *groupItem) {
		item.offsets += added
		item.account = cmp.Or(item.account, account)
		if !item.occupied() { // commits without members count as use
			g := *item.stored
			g.emptySince = newest
			item.stored = &g
		}
	})
}

func (s *state) applyGeneration(key Key, g *generation) {
	s.dropConsumers(key)
	s.update(key, func(item *groupItem) { item.stored, item.consumers = g, 0 })
}

func (s *state) applyConsumers(key Key, head *generation, gone []string, put []*storedConsumer) {
	by := 0
	for _, id := range gone {
		if _, ok := s.consumers.Delete(consumerItem{key: key, id: id}); ok {
			by--
		}
	}
	for _, m := range put {
		if _, replaced := s.consumers.Set(consumerItem{key, m.id, m}); !replaced {
			by++
		}
	}
	s.update(key, func(item *groupItem) {
		item.stored = head
		item.consumers += by
	})
}

// consumersOf returns the members of a group with the consumer protocol in order of their ids.
func (s *state) consumersOf(key Key) []*storedConsumer {
	var all []*storedConsumer
	s.consumers.Ascend(consumerItem{key: key}, func(item consumerItem) bool {
		if item.key != key {
			return false
		}
		all = append(all, item.storedConsumer)
		return true
	})
	return all
}

func (s *state) dropConsumers(key Key) {
	for _, m := range s.consumersOf(key) {
		s.consumers.Delete(consumerItem{key: key, id: m.id})
	}
}

// committed returns the partitions for which a group has committed offsets, in order.
func (s *state) committed(key Key) []Partition {
	var all []Partition
	s.eachOffset(key, func(at Partition, _ Offset) { all = append(all, at) })
	return all
}

func (s *state) eachOffset(key Key, visit func(Partition, Offset)) {
	s.offsets.Ascend(offsetItem{key: key}, func(item offsetItem) bool {
		if item.key != key {
			return false
		}
		visit(item.at, item.Offset)
		return true
	})
}

func (s *state) deleteOffsets(key Key, gone []Partition) {
	removed := 0
	for _, at := range gone {
		if old, ok := s.offsets.Delete(offsetItem{key: key, at: at}); ok {
			removed++
			s.usage.add(key.Tenant, old.account, -old.size())
		}
	}
	if _, ok := s.groups.Get(key.path()); ok && removed > 0 {
		s.update(key, func(item *groupItem) { item.offsets -= removed })
	}
}

// Snapshot implements statemachine.State. It writes every group as the records that recreate it,
// each after its length.
func (s *state) Snapshot(out io.Writer) error {
	buffered := bufio.NewWriter(out)
	var failed error
	write := func(record []byte) {
		if failed == nil {
			failed = framing.WriteFrame(buffered, record)
		}
	}
	s.groups.Scan(func(_ string, item groupItem) bool {
		// Offsets come first, because applying them changes emptySince of an empty group.
		owned := s.snapshotOffsets(item.key, write)
		if item.stored.consumers != nil {
			s.snapshotConsumers(&item, write)
		} else {
			write(generationRecord(item.key, item.stored).Writer)
		}
		if item.account != "" || owned { // with owned offsets also that the group has no payer
			write(payerRecord(item.key, item.account))
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return buffered.Flush()
}

// snapshotOffsets writes the offsets of a group in several records, and reports whether an account is known.
func (s *state) snapshotOffsets(key Key, write func([]byte)) (owned bool) {
	const part = 1000
	byAccount := make(map[string][]offsetItem)
	s.offsets.Ascend(offsetItem{key: key}, func(item offsetItem) bool {
		if item.key != key {
			return false
		}
		byAccount[item.account] = append(byAccount[item.account], item)
		owned = owned || item.account != ""
		return true
	})
	for _, account := range slices.Sorted(maps.Keys(byAccount)) {
		for chunk := range slices.Chunk(byAccount[account], part) {
			w := offsetsRecord(key, account, len(chunk))
			for _, item := range chunk {
				w.offset(item.at, item.Offset)
			}
			write(w.Writer)
		}
	}
	return owned
}

// snapshotConsumers writes a group with the consumer protocol in several records.
func (s *state) snapshotConsumers(item *groupItem, write func([]byte)) {
	const part = 100
	members := s.consumersOf(item.key)
	for first := true; first || len(members) > 0; first = false {
		n := min(part, len(members))
		write(consumersRecord(item.key, item.stored, nil, members[:n]).Writer)
		members = members[n:]
	}
}

// Restore implements statemachine.State.
func (s *state) Restore(in io.Reader) error {
	return applyEach(in, 1<<30, s.Apply)
}

// applyEach applies the records of a snapshot. A record has at most limit bytes.
func applyEach(in io.Reader, limit int, apply func(position uint64, record []byte) error) error {
	frames := framing.NewFrameReader(bufio.NewReader(in), limit)
	for position := uint64(1); ; position++ {
		record, err := frames.Next()
		switch {
		case err == io.EOF: //nolint:errorlint // Next returns it bare between records
			return nil
		case errors.Is(err, framing.ErrTooLarge):
			return fmt.Errorf("%w: record %d: %w", engine.ErrCorrupt, position, err)
		case err != nil:
			return fmt.Errorf("reading record %d: %w", position, err)
		}
		if err := apply(position, record); err != nil {
			return err
		}
	}
}
