package kafkaapi

import (
	"freshet/internal/broker/records"
	"freshet/internal/storage/engine"
)

const (
	maxBuiltRecords = 1000 // of single messages in one batch
	maxBuiltBytes   = 256 << 10
)

// batches gathers what is stored into the bytes that a client gets.
type batches struct {
	limit    int
	first    bool // the first batch is taken whatever its size
	out      rope
	building *records.Builder
	base     uint64 // first offset of what is being built
	messages int
	full     bool   // there is no room for more
	next     uint64 // offset behind what is in it
}

func (b *batches) size() int {
	if b.building != nil {
		return b.building.Size() + b.out.size
	}
	return b.out.size
}

// add takes one more run or message, and says whether there is room for more.
func (b *batches) add(s *engine.Stored) (bool, error) {
	if s.Run.Count == 0 {
		b.full = !b.addMessage(s)
	} else {
		b.full = !b.addRun(s)
	}
	return !b.full, nil
}

func (b *batches) addRun(s *engine.Stored) bool {
	b.flush()
	if b.out.size+len(s.Run.Body) > b.limit && (b.out.size > 0 || !b.first) {
		return false
	}
	records.Place(b.out.add(s.Run.Body), int64(s.First), 0) //nolint:gosec // entries are far below
	b.messages += int(s.Run.Count)
	b.next = s.First + uint64(s.Run.Count) //nolint:gosec // counts are above 0
	return b.out.size < b.limit
}

// addMessage puts a message that came without a batch into one with its
// neighbours.
func (b *batches) addMessage(s *engine.Stored) bool {
	if b.building != nil && (b.building.Count() >= maxBuiltRecords || b.building.Size() >= maxBuiltBytes) {
		b.flush()
	}
	if b.size()+len(s.Record.Payload) > b.limit && (b.size() > 0 || !b.first) {
		return false
	}
	if b.building == nil {
		b.building, b.base = records.NewBuilder(nil, int64(s.First)), s.First //nolint:gosec // entries are far below
	}
	b.building.Add(recordOf(s, int32(s.First-b.base))) //nolint:gosec // at most a thousand
	b.messages++
	b.next = s.First + 1
	return b.size() < b.limit
}

// flush ends the batch that is being built.
func (b *batches) flush() {
	if b.building != nil {
		b.out.add(b.building.Finish())
		b.building = nil
	}
}

// recordOf is a message as clients of the stream protocol see it
// (docs/spec/stream.md#mapping).
func recordOf(s *engine.Stored, delta int32) *records.Record {
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
