package kafkaapi

import "sync"

// segmentedBuffer is a byte buffer of several parts. Batches are copied into it once, out of the store's
// blocks, and sent from there. A contiguous buffer would copy them twice more: when it grows, and
// into the frame.
type segmentedBuffer struct {
	segments [][]byte
	size     int
}

const (
	segmentSize = smallFrame // size of the largest parts, which are pooled
	// contiguousPrefix is the number of leading bytes of an added slice that are guaranteed to be in one
	// part.
	contiguousPrefix = 64
)

var segmentPool = sync.Pool{New: func() any { return new([segmentSize]byte) }}

// add appends b and returns its beginning in the buffer, which is contiguous for contiguousPrefix bytes.
func (r *segmentedBuffer) add(b []byte) []byte {
	at := len(r.segments) - 1
	if at < 0 || cap(r.segments[at])-len(r.segments[at]) < min(len(b), contiguousPrefix) {
		at = r.grow(len(b))
	}
	begins := len(r.segments[at])
	first := r.segments[at]
	for r.size += len(b); ; at = r.grow(len(b)) {
		n := min(len(b), cap(r.segments[at])-len(r.segments[at]))
		r.segments[at] = append(r.segments[at], b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return first[begins:cap(first)]
		}
	}
}

// grow adds a part that is at least as large as all parts before it, up to segmentSize, and returns
// its index. Small buffers stay small, and large buffers have few parts.
func (r *segmentedBuffer) grow(need int) int {
	if size := max(need, r.size); size < segmentSize {
		r.segments = append(r.segments, make([]byte, 0, size))
	} else {
		part, _ := segmentPool.Get().(*[segmentSize]byte)
		r.segments = append(r.segments, part[:0])
	}
	return len(r.segments) - 1
}

// free returns the parts to the pool. The caller must not use them afterwards.
func (r *segmentedBuffer) free() {
	for _, part := range r.segments {
		if cap(part) == segmentSize {
			segmentPool.Put((*[segmentSize]byte)(part[:segmentSize]))
		}
	}
	*r = segmentedBuffer{}
}
