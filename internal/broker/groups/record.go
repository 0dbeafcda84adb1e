package groups

import (
	"fmt"
	"slices"
	"strings"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// recordKind is the first byte of a journal record; the fields follow. Numbers are varints, strings
// have a length prefix. An unknown kind was written by a newer version.
type recordKind byte

const (
	recordOffsets       recordKind = 1 // key, count, (topic, partition, offset, epoch, metadata, time)…
	recordGeneration    recordKind = 2 // key, the whole stored group
	recordEmpty         recordKind = 3 // key, time, number: the last member left
	recordDeleteGroup   recordKind = 4 // key: the group and its offsets are deleted
	recordDeleteOffsets recordKind = 5 // key, count, (topic, partition)…: some offsets are deleted
	// key, header, removed members, changed members: a group with the consumer protocol
	recordConsumers recordKind = 6
	// recordConsumers with classic members: for each changed member its protocols and session timeout follow
	recordMixedConsumers recordKind = 7
	// recordGeneration, followed by the owner of each member
	recordOwnedGeneration recordKind = 10
	// recordConsumers, followed for each changed member by its protocols and session timeout, and its owner
	recordOwnedConsumers recordKind = 11
	// recordOffsets with the account that commits, after the key
	recordAccountOffsets recordKind = 16
	// key, account that pays for the group
	recordPayer recordKind = 17
)

// writer appends the fields of a record.
type writer struct{ wire.Writer }

func newRecord(kind recordKind, key Key) *writer {
	w := &writer{wire.Writer{byte(kind)}}
	w.Text(key.Tenant)
	w.Text(key.Group)
	return w
}

func (w *writer) offset(at Partition, o Offset) {
	w.partition(at)
	w.Varint(o.Offset)
	w.Varint(int64(o.LeaderEpoch))
	w.Text(o.Metadata)
	w.Varint(o.Time)
}

func (w *writer) generation(g *generation) {
	w.Varint(int64(g.number))
	w.Text(g.protocolType)
	w.Text(g.protocol)
	w.Text(g.leader)
	w.Varint(g.emptySince)
	w.Uvarint(uint64(len(g.members)))
	for i := range g.members {
		m := &g.members[i]
		for _, s := range []string{m.id, m.instance, m.client, m.host} {
			w.Text(s)
		}
		w.Varint(m.sessionMillis)
		w.Varint(m.rebalanceMillis)
		w.Text(string(m.metadata))
		w.Text(string(m.assignment))
	}
}

// generationRecord returns the record of a group with the classic protocol. Without owners it is a record that
// older versions can read.
func generationRecord(key Key, g *generation) *writer {
	kind := recordGeneration
	if slices.ContainsFunc(g.members, func(m storedMember) bool { return m.owner.principal != "" }) {
		kind = recordOwnedGeneration
	}
	w := newRecord(kind, key)
	w.generation(g)
	if kind == recordOwnedGeneration {
		for i := range g.members {
			w.owner(&g.members[i].owner)
		}
	}
	return w
}

// reader consumes the fields of a record.
type reader struct{ wire.Reader }

func (r *reader) key() Key {
	key := Key{Tenant: r.Text(), Group: r.Text()}
	if strings.Contains(key.Tenant, "\x00") { // see Key.path
		r.Fail(wire.ErrRange)
	}
	return key
}

func (r *reader) partition() Partition {
	return Partition{Topic: engine.TopicID(r.Uvarint()), Partition: r.int32()}
}

func (r *reader) offset() (Partition, Offset) {
	at := r.partition()
	return at, Offset{Offset: r.Varint(), LeaderEpoch: r.int32(), Metadata: r.Text(), Time: r.Varint()}
}

func (r *reader) generation() *generation {
	g := &generation{
		number:       r.int32(),
		protocolType: r.Text(), protocol: r.Text(), leader: r.Text(), emptySince: r.Varint(),
	}
	g.members = make([]storedMember, r.Count())
	for i := range g.members {
		g.members[i] = storedMember{
			id: r.Text(), instance: r.Text(), client: r.Text(), host: r.Text(),
			sessionMillis: r.Varint(), rebalanceMillis: r.Varint(),
			metadata: []byte(r.Text()), assignment: []byte(r.Text()),
		}
	}
	return g
}

// checkEnd returns an error unless the record had exactly the fields that were read.
func (r *reader) checkEnd() error {
	if err := r.End(); err != nil {
		return fmt.Errorf("%w: consumer group record: %w", engine.ErrCorrupt, err)
	}
	return nil
}
