package kafkaapi

import "sync"

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
