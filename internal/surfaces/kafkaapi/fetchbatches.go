package kafkaapi

import (
	"freshet/internal/broker/records"
	"freshet/internal/storage/engine"
)

const (
	maxBuiltRecords = 1000 // single messages per built batch
	maxBuiltBytes   = 256 << 10
)

// batches collects stored batches and messages in the form that the client receives.
type batches struct {
	limit       int
	acceptFirst bool // accept the first batch regardless of its size
	// reserve takes room for n more bytes of a partition that has some; false if there is none.
	reserve  func(has, n int) bool
	out      segmentedBuffer
	builder  *records.Builder
	base     uint64 // first offset of the batch being built
	messages int
	full     bool   // the limit is reached
	next     uint64 // offset after the last record
}

func (b *batches) size() int {
	if b.builder != nil {
		return b.builder.Size() + b.out.size
	}
	return b.out.size
}

// add adds a stored batch or message and returns whether more fits.
func (b *batches) add(s *engine.StoredValue) (bool, error) {
	if s.Run.Count == 0 {
		b.full = !b.addMessage(s)
	} else {
		b.full = !b.addBatch(s)
	}
	return !b.full, nil
}

func (b *batches) addBatch(s *engine.StoredValue) bool {
	b.flush()
	if b.out.size+len(s.Run.Body) > b.limit && (b.out.size > 0 || !b.acceptFirst) {
		return false
	}
	if !b.reserve(b.out.size, len(s.Run.Body)) {
		return false
	}
	records.SetBaseOffset(b.out.add(s.Run.Body), int64(s.First), 0) //nolint:gosec // offsets are far below 2^63
	b.messages += int(s.Run.Count)
	b.next = s.First + uint64(s.Run.Count) //nolint:gosec // counts are above 0
	return b.out.size < b.limit
}

// addMessage adds a message that was not stored as a batch to a built batch, together with its
// neighbours.
func (b *batches) addMessage(s *engine.StoredValue) bool {
	if b.builder != nil && (b.builder.Count() >= maxBuiltRecords || b.builder.Size() >= maxBuiltBytes) {
		b.flush()
	}
	if b.size()+len(s.Record.Payload) > b.limit && (b.size() > 0 || !b.acceptFirst) {
		return false
	}
	if !b.reserve(b.size(), s.Record.Weight()) {
		return false
	}
	if b.builder == nil {
		b.base = s.First
		b.builder = records.NewBuilder(nil, int64(s.First)) //nolint:gosec // offsets are far below 2^63
	}
	b.builder.Add(recordOf(s, int32(s.First-b.base))) //nolint:gosec // at most a thousand
	b.messages++
	b.next = s.First + 1
	return b.size() < b.limit
}

// flush completes the batch being built.
func (b *batches) flush() {
	if b.builder != nil {
		b.out.add(b.builder.Finish())
		b.builder = nil
	}
}

// recordOf converts a message to a Kafka record (docs/spec/stream.md#mapping).
func recordOf(s *engine.StoredValue, delta int32) *records.Record {
	m := &s.Record.Message
	r := &records.Record{Delta: delta, Time: m.Timestamp(s.PublishTime), Value: m.Payload}
	if m.Payload == nil {
		r.Value = []byte{}
	}
	if m.NullPayload {
		r.Value = nil
	}
	if m.Key != "" || m.EmptyKey {
		r.Key = []byte(m.Key)
	}
	for i := range m.Properties {
		h := records.Header{Key: []byte(m.Properties[i].Key), Value: []byte(m.Properties[i].Value)}
		if m.Properties[i].Null {
			h.Value = nil
		}
		r.Headers = append(r.Headers, h)
	}
	return r
}
