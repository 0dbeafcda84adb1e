package kafkaapi

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kbin"
)

// frameWriter encodes a frame into parts. Large batches become parts of their own and are not
// copied.
type frameWriter struct {
	completed [][]byte // complete parts, before tail
	size      int      // bytes of done
	tail      []byte   // part in progress; callers append to it
}

// maxCopiedBytes is the size up to which copying batches is cheaper than another write buffer.
const maxCopiedBytes = 4 << 10

// appendSegments appends the bytes of a segmented buffer. A large buffer must not change until the frame is
// sent.
func (w *frameWriter) appendSegments(r *segmentedBuffer) {
	if r.size <= maxCopiedBytes {
		for _, part := range r.segments {
			w.tail = append(w.tail, part...)
		}
		return
	}
	w.cut()
	w.completed = append(w.completed, r.segments...)
	w.size += r.size
}

// cut completes the part in progress. The next bytes go to a new part with its own memory.
func (w *frameWriter) cut() {
	if len(w.tail) > 0 {
		w.completed = append(w.completed, w.tail)
		w.size += len(w.tail)
	}
	w.tail = w.tail[len(w.tail):]
}

// parts returns the parts of the frame and its size.
func (w *frameWriter) parts() (parts [][]byte, size int) {
	w.cut()
	return w.completed, w.size
}

func (w *frameWriter) arrayLen(flexible bool, n int) {
	if flexible {
		w.tail = kbin.AppendCompactArrayLen(w.tail, n)
	} else {
		w.tail = kbin.AppendArrayLen(w.tail, n)
	}
}

// tag is a tagged field of a structure.
type tag struct {
	number  uint32
	content []byte
}

// tags writes the tagged fields of a structure, in the order of their numbers.
func (w *frameWriter) tags(fields ...tag) {
	w.tail = kbin.AppendUvarint(w.tail, uint32(len(fields))) //nolint:gosec // a few
	for _, t := range fields {
		w.tail = kbin.AppendUvarint(w.tail, t.number)
		w.tail = kbin.AppendUvarint(w.tail, uint32(len(t.content))) //nolint:gosec // one address per member
		w.tail = append(w.tail, t.content...)
	}
}

// encodable is the content of a response: a kmsg.Response or fetchResponse.
type encodable interface {
	AppendTo(dst []byte) []byte
}

// encode encodes the frame of a response in parts.
func encode(a *pendingResponse, b encodable) (parts [][]byte, size int) {
	budget := 256
	fetched, inParts := b.(*fetchResponse)
	if a.room != nil && !inParts { // estimate of the encoded size
		budget += int(a.room.bytes())
	}
	w := frameWriter{tail: make([]byte, 4, budget)}                       // the size is set at the end
	w.tail = binary.BigEndian.AppendUint32(w.tail, uint32(a.correlation)) //nolint:gosec // signed on the wire
	if a.flexible {
		w.tail = append(w.tail, 0) // no tagged fields
	}
	if inParts {
		fetched.writeTo(&w)
	} else {
		w.tail = b.AppendTo(w.tail)
	}
	parts, size = w.parts()
	binary.BigEndian.PutUint32(parts[0], uint32(size-4)) //nolint:gosec // far below 2 GiB
	return parts, size
}
