package kafkaapi

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kbin"
)

// frameWriter encodes a frame into parts. Large ropes become parts of their own and are
// not copied.
type frameWriter struct {
	done [][]byte // complete parts, before tail
	size int      // of done
	tail []byte   // what is being written; callers append to it
}

// smallRope is the size up to which copying a rope is cheaper than one more buffer to write.
const smallRope = 4 << 10

// rope writes the bytes of a rope. A large rope must stay as it is until the frame is sent.
func (w *frameWriter) rope(r *rope) {
	if r.size <= smallRope {
		for _, part := range r.parts {
			w.tail = append(w.tail, part...)
		}
		return
	}
	w.cut()
	w.done = append(w.done, r.parts...)
	w.size += r.size
}

// cut ends the part that is being written. What is appended next goes behind it, in memory
// that no part uses.
func (w *frameWriter) cut() {
	if len(w.tail) > 0 {
		w.done = append(w.done, w.tail)
		w.size += len(w.tail)
	}
	w.tail = w.tail[len(w.tail):]
}

// parts returns the frame and its size.
func (w *frameWriter) parts() (parts [][]byte, size int) {
	w.cut()
	return w.done, w.size
}

func (w *frameWriter) arrayLen(flexible bool, n int) {
	if flexible {
		w.tail = kbin.AppendCompactArrayLen(w.tail, n)
	} else {
		w.tail = kbin.AppendArrayLen(w.tail, n)
	}
}

// tag writes the one tagged field that a structure has.
func (w *frameWriter) tag(number uint32, content []byte) {
	w.tail = kbin.AppendUvarint(w.tail, 1)
	w.tail = kbin.AppendUvarint(w.tail, number)
	w.tail = kbin.AppendUvarint(w.tail, uint32(len(content))) //nolint:gosec // an address for each member
	w.tail = append(w.tail, content...)
}

// encodable is the content of an answer: a response of the codec, or fetchResponse.
type encodable interface {
	AppendTo(dst []byte) []byte
}

// encode makes the frame of a response, in parts.
func encode(a *answer, b encodable) (parts [][]byte, size int) {
	room := 256
	fetched, inParts := b.(*fetchResponse)
	if a.reserved != nil && !inParts { // about what it holds
		room += int(a.reserved.bytes) + int(a.reserved.bytes>>6)
	}
	w := frameWriter{tail: make([]byte, 4, room)}                         // the size comes last
	w.tail = binary.BigEndian.AppendUint32(w.tail, uint32(a.correlation)) //nolint:gosec // the wire's numbers are signed
	if a.flexible {
		w.tail = append(w.tail, 0) // no tags
	}
	if inParts {
		fetched.writeTo(&w)
	} else {
		w.tail = b.AppendTo(w.tail)
	}
	parts, size = w.parts()
	binary.BigEndian.PutUint32(parts[0], uint32(size-4)) //nolint:gosec // bounded far below
	return parts, size
}
