package groups

import "encoding/binary"

// ConsumerAssignment reads the assignment of a member of the classic protocol whose
// type is that of consumers: topics as the members call them, and partitions. It is
// the member's leader who wrote it, so it may be anything.
func ConsumerAssignment(data []byte) (topics map[string][]int32, ok bool) {
	r := wireReader{data}
	r.take(2) // version
	topics = make(map[string][]int32)
	for range r.count(6) {
		name := string(r.take(int(r.short())))
		n := r.count(4)
		partitions := make([]int32, 0, n)
		for range n {
			partitions = append(partitions, r.int32())
		}
		topics[name] = append(topics[name], partitions...)
	}
	return topics, r.rest != nil
}

// wireReader reads what the protocol's clients write. rest is nil once it failed.
type wireReader struct{ rest []byte }

func (r *wireReader) take(n int) []byte {
	if r.rest == nil || n < 0 || n > len(r.rest) {
		r.rest = nil
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *wireReader) short() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b)) //nolint:gosec // the wire's numbers are signed
	}
	return -1
}

func (r *wireReader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b)) //nolint:gosec // as above
	}
	return -1
}

// count reads the length of an array whose elements have at least size bytes.
func (r *wireReader) count(size int) int32 {
	n := r.int32()
	if n < 0 || int(n)*size > len(r.rest) {
		r.rest = nil
		return 0
	}
	return n
}
