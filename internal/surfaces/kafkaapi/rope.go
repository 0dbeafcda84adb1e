package kafkaapi

import "sync"

// rope is a byte buffer of several parts. Batches are copied into it once, out of the store's
// blocks, and sent from there. A contiguous buffer would copy them twice more: when it grows, and
// into the frame.
type rope struct {
	parts [][]byte
	size  int
}

const (
	ropePart = smallFrame // size of the largest parts, which are pooled
	// ropeHead is the number of leading bytes of an added slice that are guaranteed to be in one
	// part.
	ropeHead = 64
)

var ropeParts = sync.Pool{New: func() any { return new([ropePart]byte) }}

// add appends b and returns its beginning in the buffer, which is contiguous for ropeHead bytes.
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

// grow adds a part that is at least as large as all parts before it, up to ropePart, and returns
// its index. Small buffers stay small, and large buffers have few parts.
func (r *rope) grow(need int) int {
	if size := max(need, r.size); size < ropePart {
		r.parts = append(r.parts, make([]byte, 0, size))
	} else {
		part, _ := ropeParts.Get().(*[ropePart]byte)
		r.parts = append(r.parts, part[:0])
	}
	return len(r.parts) - 1
}

// free returns the parts to the pool. The caller must not use them afterwards.
func (r *rope) free() {
	for _, part := range r.parts {
		if cap(part) == ropePart {
			ropeParts.Put((*[ropePart]byte)(part[:ropePart]))
		}
	}
	*r = rope{}
}
