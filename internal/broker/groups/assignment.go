package groups

import "encoding/binary"

// ConsumerAssignment decodes the assignment of a member with the classic protocol and protocol type
// "consumer": partitions by topic name as the members use it. A client wrote the assignment, so it
// may contain anything.
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

// wireReader decodes bytes that Kafka clients wrote. rest is nil after a failure.
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
		return int16(binary.BigEndian.Uint16(b)) //nolint:gosec // numbers on the wire are signed
	}
	return -1
}

func (r *wireReader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b)) //nolint:gosec // numbers on the wire are signed
	}
	return -1
}

// count reads the length of an array whose elements have at least size bytes each.
func (r *wireReader) count(size int) int32 {
	n := r.int32()
	if n < 0 || int(n)*size > len(r.rest) {
		r.rest = nil
		return 0
	}
	return n
}
