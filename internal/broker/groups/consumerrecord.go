package groups

import "freshet/internal/storage/engine"

// consumers appends the header of a group with the consumer protocol, the removed members and the
// changed members.
func (w *writer) consumers(head *generation, gone []string, put []*storedConsumer) {
	w.int(int64(head.number))
	w.int(int64(head.consumers.assignmentEpoch))
	w.text(head.consumers.assignor)
	w.int(head.emptySince)
	w.uint(uint64(len(gone)))
	for _, id := range gone {
		w.text(id)
	}
	w.uint(uint64(len(put)))
	for _, m := range put {
		w.consumer(m)
	}
}

func (w *writer) consumer(m *storedConsumer) {
	for _, s := range []string{m.id, m.instance, m.client, m.host, m.rack, m.assignor, m.pattern} {
		w.text(s)
	}
	w.int(m.rebalanceMillis)
	w.uint(uint64(len(m.names)))
	for _, name := range m.names {
		w.text(name)
	}
	w.uint(uint64(len(m.topics)))
	for _, topic := range m.topics {
		w.uint(uint64(topic))
	}
	w.int(int64(m.epoch))
	w.int(int64(m.previousEpoch))
	w.uint(uint64(m.stage))
	for _, grants := range [][]ownedPartition{m.assigned, m.pendingRevocation} {
		w.uint(uint64(len(grants)))
		for _, g := range grants {
			w.partition(g.Partition)
			w.int(int64(g.since))
		}
	}
	w.uint(uint64(len(m.target)))
	for _, p := range m.target {
		w.partition(p)
	}
}

func (w *writer) partition(p Partition) {
	w.uint(uint64(p.Topic))
	w.int(int64(p.Partition))
}

func (r *reader) consumers() (head *generation, gone []string, put []*storedConsumer) {
	head = &generation{number: r.int32()}
	head.consumers = &consumersHeader{assignmentEpoch: r.int32(), assignor: r.text()}
	head.emptySince = r.int()
	for range r.count() {
		gone = append(gone, r.text())
	}
	for range r.count() {
		put = append(put, r.consumer())
	}
	return head, gone, put
}

func (r *reader) consumer() *storedConsumer {
	m := &storedConsumer{
		id: r.text(), instance: r.text(), client: r.text(), host: r.text(), rack: r.text(), assignor: r.text(),
		pattern:         r.text(),
		rebalanceMillis: r.int(),
	}
	for range r.count() {
		m.names = append(m.names, r.text())
	}
	for range r.count() {
		m.topics = append(m.topics, engine.TopicID(r.uint()))
	}
	m.epoch, m.previousEpoch = r.int32(), r.int32()
	if m.stage = stage(r.uint()); m.stage > unreleased {
		r.fail()
	}
	for _, grants := range []*[]ownedPartition{&m.assigned, &m.pendingRevocation} {
		for range r.count() {
			*grants = append(*grants, ownedPartition{r.partition(), r.int32()})
		}
	}
	for range r.count() {
		m.target = append(m.target, r.partition())
	}
	return m
}

func (r *reader) int32() int32 { return int32(r.int()) } //nolint:gosec // written from an int32
