package groups

import (
	"slices"
	"time"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// consumersRecord returns a record of a group with the consumer protocol. Groups without classic members and
// without owners have records that older versions can read.
func consumersRecord(key Key, head *generation, gone []string, put []*storedConsumer) *writer {
	kind := recordConsumers
	if slices.ContainsFunc(put, func(m *storedConsumer) bool { return m.classic != nil }) {
		kind = recordMixedConsumers
	}
	if slices.ContainsFunc(put, func(m *storedConsumer) bool { return m.owner.principal != "" }) {
		kind = recordOwnedConsumers
	}
	w := newRecord(kind, key)
	w.consumers(head, gone, put)
	for _, m := range put {
		if kind != recordConsumers {
			w.classic(m.classic)
		}
		if kind == recordOwnedConsumers {
			w.owner(&m.owner)
		}
	}
	return w
}

// classic appends what a member has if it uses the classic protocol.
func (w *writer) classic(m *classicMember) {
	if m == nil {
		w.Uvarint(0)
		return
	}
	w.Uvarint(uint64(len(m.protocols)))
	for _, p := range m.protocols {
		w.Text(p.Name)
		w.Text(string(p.Metadata))
	}
	w.Varint(m.session.Milliseconds())
}

// classic reads what a member has if it uses the classic protocol; such a member has at least one protocol.
func (r *reader) classic() *classicMember {
	n := r.Count()
	if n == 0 {
		return nil
	}
	m := &classicMember{}
	for range n {
		m.protocols = append(m.protocols, Protocol{Name: r.Text(), Metadata: []byte(r.Text())})
	}
	m.session = time.Duration(r.Varint()) * time.Millisecond
	return m
}

// consumers appends the header of a group with the consumer protocol, the removed members and the
// changed members.
func (w *writer) consumers(head *generation, gone []string, put []*storedConsumer) {
	w.Varint(int64(head.number))
	w.Varint(int64(head.consumers.assignmentEpoch))
	w.Text(head.consumers.assignor)
	w.Varint(head.emptySince)
	w.Uvarint(uint64(len(gone)))
	for _, id := range gone {
		w.Text(id)
	}
	w.Uvarint(uint64(len(put)))
	for _, m := range put {
		w.consumer(m)
	}
}

func (w *writer) consumer(m *storedConsumer) {
	for _, s := range []string{m.id, m.instance, m.client, m.host, m.rack, m.assignor, m.pattern} {
		w.Text(s)
	}
	w.Varint(m.rebalanceMillis)
	w.Uvarint(uint64(len(m.names)))
	for _, name := range m.names {
		w.Text(name)
	}
	w.Uvarint(uint64(len(m.topics)))
	for _, topic := range m.topics {
		w.Uvarint(uint64(topic))
	}
	w.Varint(int64(m.epoch))
	w.Varint(int64(m.previousEpoch))
	w.Uvarint(uint64(m.stage))
	for _, grants := range [][]ownedPartition{m.assigned, m.pendingRevocation} {
		w.Uvarint(uint64(len(grants)))
		for _, g := range grants {
			w.partition(g.Partition)
			w.Varint(int64(g.since))
		}
	}
	w.Uvarint(uint64(len(m.target)))
	for _, p := range m.target {
		w.partition(p)
	}
}

func (w *writer) partition(p Partition) {
	w.Uvarint(uint64(p.Topic))
	w.Varint(int64(p.Partition))
}

func (r *reader) consumers() (head *generation, gone []string, put []*storedConsumer) {
	head = &generation{number: r.int32()}
	head.consumers = &consumersHeader{assignmentEpoch: r.int32(), assignor: r.Text()}
	head.emptySince = r.Varint()
	for range r.Count() {
		gone = append(gone, r.Text())
	}
	for range r.Count() {
		put = append(put, r.consumer())
	}
	return head, gone, put
}

func (r *reader) consumer() *storedConsumer {
	m := &storedConsumer{
		id: r.Text(), instance: r.Text(), client: r.Text(), host: r.Text(), rack: r.Text(), assignor: r.Text(),
		pattern:         r.Text(),
		rebalanceMillis: r.Varint(),
	}
	for range r.Count() {
		m.names = append(m.names, r.Text())
	}
	for range r.Count() {
		m.topics = append(m.topics, engine.TopicID(r.Uvarint()))
	}
	m.epoch, m.previousEpoch = r.int32(), r.int32()
	if m.stage = stage(r.Uvarint()); m.stage > unreleased {
		r.Fail(wire.ErrRange)
	}
	for _, grants := range []*[]ownedPartition{&m.assigned, &m.pendingRevocation} {
		for range r.Count() {
			*grants = append(*grants, ownedPartition{r.partition(), r.int32()})
		}
	}
	for range r.Count() {
		m.target = append(m.target, r.partition())
	}
	return m
}

func (r *reader) int32() int32 { return int32(r.Varint()) } //nolint:gosec // written from an int32
