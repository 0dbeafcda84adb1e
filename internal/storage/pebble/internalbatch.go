package pebble

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"freshet/internal/storage/engine"
)

// internalFormat is the internal format of batches, into which the engine packs messages that
// were appended together: each with its flags, its extra byte and its length in front. It
// never leaves the engine; readers get messages.
const internalFormat engine.BatchFormat = 0

// maxInternalBatchBytes limits the body of such a batch, because reading one of its messages reads
// the whole batch.
const maxInternalBatchBytes = 256 << 10

// packInternalBatches packs drafts into batches. It returns nil when the messages have to be stored
// individually: delayed and deduplicated messages are found by their own keys.
func packInternalBatches(drafts []draft, publish int64) []packedBatch {
	if len(drafts) < 2 {
		return nil
	}
	for i := range drafts {
		if drafts[i].msg.DeliverAt != 0 || !drafts[i].msg.Dedup.IsZero() {
			return nil
		}
	}
	var batches []packedBatch
	current := packedBatch{format: internalFormat, maxTime: -1}
	flush := func() {
		if current.count > 0 {
			current.sum = crc32.Update(0, castagnoli, current.body)
			batches = append(batches, current)
		}
		current = packedBatch{format: internalFormat, maxTime: -1}
	}
	for i := range drafts {
		d := &drafts[i]
		length := d.length()
		if len(current.body)+length > maxInternalBatchBytes {
			flush()
		}
		if current.body == nil {
			current.body = make([]byte, 0, batchCapacity(drafts[i:]))
		}
		current.count++
		current.maxTime = max(current.maxTime, d.msg.Timestamp(publish))
		b := append(current.body, d.flags, d.extra)
		b = binary.AppendUvarint(b, uint64(length))
		b = append(b, d.fields...)
		current.body = append(b, d.msg.Payload...)
	}
	flush()
	return batches
}

// length returns the length of a draft in a batch, without its prefix.
func (d *draft) length() int { return len(d.fields) + len(d.msg.Payload) }

// batchCapacity returns the size of the next batch of these drafts, so that its buffer is
// allocated once.
func batchCapacity(drafts []draft) int {
	const before = 2 + binary.MaxVarintLen32 // flags, extra byte, length
	capacity := 0
	for i := range drafts {
		next := capacity + before + drafts[i].length()
		if i > 0 && next > maxInternalBatchBytes {
			break
		}
		capacity = next
	}
	return capacity
}

// internalReader reads the messages of a batch in the internal format, which share memory with the
// body.
type internalReader struct {
	body []byte // from the next message on
	next int32  // its index
}

// Next implements engine.BatchReader.
func (r *internalReader) Next(from int32, _ func(total int64) error) (int32, *engine.Message, error) {
	for len(r.body) > 0 {
		if len(r.body) < 3 {
			return 0, nil, errBatchLength
		}
		flags, extra := r.body[0], r.body[1]
		length, n := binary.Uvarint(r.body[2:])
		if n <= 0 || length > uint64(len(r.body)-2-n) {
			return 0, nil, errBatchLength
		}
		start := 2 + n
		end := start + int(length)
		fields := r.body[start:end:end]
		r.body = r.body[end:]
		i := r.next
		if r.next++; i < from {
			continue
		}
		m := new(engine.Message)
		if !decodeMessage(m, flags, extra, fields) {
			return 0, nil, errBatchLength
		}
		return i, m, nil
	}
	return 0, nil, io.EOF
}

// Memory implements engine.BatchReader.
func (*internalReader) Memory() int64 { return 0 }

// Close implements engine.BatchReader.
func (*internalReader) Close() {}
