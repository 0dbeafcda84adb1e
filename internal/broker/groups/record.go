package groups

import (
	"encoding/binary"
	"fmt"
	"strings"

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
)

// writer appends the fields of a record.
type writer struct{ b []byte }

func newRecord(kind recordKind, key Key) *writer {
	w := &writer{b: []byte{byte(kind)}}
	w.text(key.Tenant)
	w.text(key.Group)
	return w
}

func (w *writer) int(v int64)   { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) text(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) offset(at Partition, o Offset) {
	w.uint(uint64(at.Topic))
	w.int(int64(at.Partition))
	w.int(o.Offset)
	w.int(int64(o.LeaderEpoch))
	w.text(o.Metadata)
	w.int(o.Time)
}

func (w *writer) generation(g *generation) {
	w.int(int64(g.number))
	w.text(g.protocolType)
	w.text(g.protocol)
	w.text(g.leader)
	w.int(g.emptySince)
	w.uint(uint64(len(g.members)))
	for i := range g.members {
		m := &g.members[i]
		for _, s := range []string{m.id, m.instance, m.client, m.host} {
			w.text(s)
		}
		w.int(m.sessionMillis)
		w.int(m.rebalanceMillis)
		w.text(string(m.metadata))
		w.text(string(m.assignment))
	}
}

// reader consumes the fields of a record. After a missing or malformed field, failed is set and all
// later fields are zero.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads the number of elements that follow. Each element has at least one byte.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n) //nolint:gosec // bounded by a length
}

func (r *reader) text() string { return string(r.bytes()) }

func (r *reader) bytes() []byte {
	n := r.count()
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) key() Key {
	key := Key{Tenant: r.text(), Group: r.text()}
	if strings.Contains(key.Tenant, "\x00") { // see Key.path
		r.fail()
	}
	return key
}

func (r *reader) partition() Partition {
	return Partition{Topic: engine.TopicID(r.uint()), Partition: int32(r.int())} //nolint:gosec // written from an int32
}

func (r *reader) offset() (Partition, Offset) {
	at := r.partition()
	return at, Offset{Offset: r.int(), LeaderEpoch: r.int32(), Metadata: r.text(), Time: r.int()}
}

func (r *reader) generation() *generation {
	g := &generation{
		number:       int32(r.int()), //nolint:gosec // written from an int32
		protocolType: r.text(), protocol: r.text(), leader: r.text(), emptySince: r.int(),
	}
	g.members = make([]storedMember, r.count())
	for i := range g.members {
		g.members[i] = storedMember{
			id: r.text(), instance: r.text(), client: r.text(), host: r.text(),
			sessionMillis: r.int(), rebalanceMillis: r.int(),
			metadata: []byte(r.text()), assignment: []byte(r.text()),
		}
	}
	return g
}

func (r *reader) fail() { r.failed, r.b = true, nil }

// checkEnd returns an error unless the record had exactly the fields that were read.
func (r *reader) checkEnd() error {
	if r.failed || len(r.b) > 0 {
		return fmt.Errorf("%w: consumer group record is truncated or has %d extra bytes", engine.ErrCorrupt, len(r.b))
	}
	return nil
}
