package groups

import "freshet/internal/base/wire"

// ConsumerAssignment decodes the assignment of a member with the classic protocol and protocol type
// "consumer": partitions by topic name as the members use it. A client wrote the assignment, so it
// may contain anything.
func ConsumerAssignment(data []byte) (topics map[string][]int32, ok bool) {
	r := wire.NewReader(data)
	r.Skip(2) // version
	topics = make(map[string][]int32)
	for range arrayLength(&r, 6) {
		name := string(r.Bytes(int(r.Int16())))
		n := arrayLength(&r, 4)
		partitions := make([]int32, 0, n)
		for range n {
			partitions = append(partitions, r.Int32())
		}
		topics[name] = append(topics[name], partitions...)
	}
	return topics, r.Err() == nil
}

// arrayLength reads the length of an array of the Kafka protocol whose elements have at least size bytes
// each.
func arrayLength(r *wire.Reader, size int) int {
	n := int(r.Int32())
	if n < 0 || n*size > r.Len() {
		r.Fail(wire.ErrTruncated)
		return 0
	}
	return n
}
