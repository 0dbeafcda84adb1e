package streamapi

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
)

// rope is bytes in parts. Batches are copied into it once, out of the store's blocks, and
// sent from there: an answer in one piece would be copied twice more, while it grows and
// into its frame.
type rope struct {
	parts [][]byte
	size  int
}

const (
	ropePart = smallFrame // the largest part, which is kept for the next answer
	// ropeHead is how many bytes of what is added are in one part.
	ropeHead = 64
)

var ropeParts = sync.Pool{New: func() any { return new([ropePart]byte) }}

// add puts bytes at the end, and returns their beginning, which lies in one part.
func (r *rope) add(b []byte) []byte {
	at := len(r.parts) - 1
	if at < 0 || cap(r.parts[at])-len(r.parts[at]) < min(len(b), ropeHead) {
		at = r.grow(len(b))
	}
	begins := len(r.parts[at])
	first := r.parts[at]
	for r.size += len(b); ; at = r.grow(len(b)) {
		n := min(len(b), cap(r.parts[at])-len(r.parts[at]))
		r.parts[at] = append(r.parts[at], b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return first[begins:cap(first)]
		}
	}
}

// grow adds a part, as large as all before it, for what is to be added: little needs
// little, and much comes in few parts.
func (r *rope) grow(need int) int {
	if size := max(need, r.size); size < ropePart {
		r.parts = append(r.parts, make([]byte, 0, size))
	} else {
		part, _ := ropeParts.Get().(*[ropePart]byte)
		r.parts = append(r.parts, part[:0])
	}
	return len(r.parts) - 1
}

// free gives the parts back. Nobody may use them then.
func (r *rope) free() {
	for _, part := range r.parts {
		if cap(part) == ropePart {
			ropeParts.Put((*[ropePart]byte)(part[:ropePart]))
		}
	}
	*r = rope{}
}

// ropes are the parts of an answer that are not copied into its frame. In the answer
// stands the mark instead.
type ropes []rope

func (r *ropes) free() {
	for i := range *r {
		(*r)[i].free()
	}
	*r = nil
}

// mark stands for a rope in an answer while that is encoded. Nobody else knows it.
var mark = sync.OnceValue(func() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return b
})

var errMark = errors.New("an answer does not have the place of its batches")

// splice puts the ropes into a frame, each in the place of a mark, and returns the
// frame's parts.
func (r ropes) splice(frame []byte, flexible bool) (parts [][]byte, size int, err error) {
	whole, size := frame, len(frame)
	for i := range r {
		at := bytes.Index(frame, mark())
		if at < 4 {
			return nil, 0, errMark
		}
		if flexible { // a length that takes one byte stands before the mark
			length := binary.AppendUvarint(nil, uint64(r[i].size)+1) //nolint:gosec // a length
			parts = append(parts, frame[:at-1], length)
			size += len(length) - 1
		} else {
			binary.BigEndian.PutUint32(frame[at-4:], uint32(r[i].size)) //nolint:gosec // bounded far below
			parts = append(parts, frame[:at])
		}
		parts = append(parts, r[i].parts...)
		size += r[i].size - len(mark())
		frame = frame[at+len(mark()):]
	}
	if len(frame) > 0 {
		parts = append(parts, frame)
	}
	binary.BigEndian.PutUint32(whole, uint32(size-4)) //nolint:gosec // bounded far below
	return parts, size, nil
}
