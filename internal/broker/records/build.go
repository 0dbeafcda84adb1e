package records

import (
	"encoding/binary"

	"freshet/internal/base/wire"
)

// Builder encodes records as one uncompressed batch and appends it to a buffer. Fetch uses it for
// messages that were not stored as a Kafka batch.
type Builder struct {
	buf   []byte
	start int // offset of the batch in buf
	base  int64
	first int64 // timestamp of the first record
	max   int64
	last  int32 // delta of the last record
	count int32
}

// NewBuilder returns a builder that appends to buf a batch with the given base offset.
func NewBuilder(buf []byte, baseOffset int64) *Builder {
	b := &Builder{buf: buf, start: len(buf), base: baseOffset, max: -1}
	var head [BatchHeaderSize]byte
	b.buf = append(b.buf, head[:]...)
	return b
}

// Add appends a record. Deltas must increase. Add ignores r.Size.
func (b *Builder) Add(r *Record) {
	if b.count == 0 {
		b.first = r.Time
	}
	b.max = max(b.max, r.Time)
	b.last = r.Delta
	b.count++

	timeDelta, delta := r.Time-b.first, int64(r.Delta)
	size := 1 + wire.VarintSize(timeDelta) + wire.VarintSize(delta) + nullableSize(r.Key) + nullableSize(r.Value) +
		wire.VarintSize(int64(len(r.Headers)))
	for i := range r.Headers {
		key := r.Headers[i].Key
		size += wire.VarintSize(int64(len(key))) + len(key) + nullableSize(r.Headers[i].Value)
	}
	buf := binary.AppendVarint(b.buf, int64(size))
	buf = append(buf, 0)
	buf = binary.AppendVarint(buf, timeDelta)
	buf = binary.AppendVarint(buf, delta)
	buf = appendNullable(buf, r.Key)
	buf = appendNullable(buf, r.Value)
	buf = binary.AppendVarint(buf, int64(len(r.Headers)))
	for i := range r.Headers {
		buf = binary.AppendVarint(buf, int64(len(r.Headers[i].Key)))
		buf = append(buf, r.Headers[i].Key...)
		buf = appendNullable(buf, r.Headers[i].Value)
	}
	b.buf = buf
}

// Count returns the number of records in the batch.
func (b *Builder) Count() int { return int(b.count) }

// Size returns the size of the batch in bytes.
func (b *Builder) Size() int { return len(b.buf) - b.start }

// Finish completes the batch and returns the buffer that ends with it. Without a record it returns
// the buffer unchanged.
func (b *Builder) Finish() []byte {
	if b.count == 0 {
		return b.buf[:b.start]
	}
	batch := b.buf[b.start:]
	putInt32(batch, atLength, int32(len(batch)-lengthBase)) //nolint:gosec // callers finish batches far below 2 GiB
	batch[atMagic] = 2
	putInt32(batch, atLastDelta, b.last)
	putInt64(batch, atFirstTime, b.first)
	putInt64(batch, atMaxTime, b.max)
	putInt64(batch, atProducer, NoProducer)
	binary.BigEndian.PutUint16(batch[atProducerEpoch:], 0xffff)
	putInt32(batch, atSequence, -1)
	putInt32(batch, atCount, b.count)
	SetBaseOffset(batch, b.base, 0)
	writeChecksum(batch)
	return b.buf
}

// appendNullable is wire.Writer.Nullable for a buffer that stays in registers: a fetch builds many small
// records.
func appendNullable(buf, data []byte) []byte {
	if data == nil {
		return binary.AppendVarint(buf, -1)
	}
	return append(binary.AppendVarint(buf, int64(len(data))), data...)
}

func nullableSize(data []byte) int {
	if data == nil {
		return 1
	}
	return wire.VarintSize(int64(len(data))) + len(data)
}
