// Package stamp makes the content of test messages. Each message names the topic that
// its producer sent it to, the producer and a sequence number, and ends with a checksum
// over all of that and over filler that differs for each message. A reader can
// therefore detect, from one message alone, that the server delivered it under the name
// of another topic or partition (ErrForeign), or that its bytes changed (ErrDamaged).
//
// The content is text:
//
//	stamp <tab> topic <tab> partition <tab> writer <tab> number <tab> size <newline>
//	filler
//	checksum: CRC-32C, eight hexadecimal digits
package stamp

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"strconv"
	"strings"
)

// AnyPartition is the Partition of a message whose producer did not choose one.
const AnyPartition = -1

var (
	// ErrDamaged reports content that no producer made.
	ErrDamaged = errors.New("content damaged")
	// ErrForeign reports a message that was delivered under a topic or partition other
	// than the one that it was sent to.
	ErrForeign = errors.New("foreign message")
)

// Stamp identifies a message. Topic and Writer contain neither tabs nor newlines.
type Stamp struct {
	Topic string
	// Partition is AnyPartition unless the producer chose it.
	Partition int32
	// Writer names the producer, Number counts its messages.
	Writer string
	Number int
	// Sum is the checksum of the content. Parse sets it; Value ignores it.
	Sum uint32
}

const (
	magic     = "stamp"
	sumLength = 8
	alphabet  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
)

var table = crc32.MakeTable(crc32.Castagnoli)

// Make returns the content of a message to any partition of a topic. It has size bytes,
// or as many as the stamp needs if that is more.
func Make(topic, writer string, number, size int) []byte {
	return Stamp{Topic: topic, Partition: AnyPartition, Writer: writer, Number: number}.Value(size)
}

// Value returns the content of the message, of size bytes or as many as the stamp
// needs if that is more.
func (s Stamp) Value(size int) []byte {
	head := func(size int) string {
		return fmt.Sprintf("%s\t%s\t%d\t%s\t%d\t%d\n", magic, s.Topic, s.Partition, s.Writer, s.Number, size)
	}
	for size < len(head(size))+sumLength {
		size = len(head(size)) + sumLength // a larger size may take one more digit in the head
	}
	value := append(make([]byte, 0, size), head(size)...)
	value = value[:size-sumLength]
	s.fill(value[len(head(size)):])
	return fmt.Appendf(value, "%08x", crc32.Checksum(value, table))
}

// fill writes text that depends on the stamp and does not compress.
func (s Stamp) fill(text []byte) {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s\t%d\t%s\t%d", s.Topic, s.Partition, s.Writer, s.Number) // never fails
	state := hash.Sum64() | 1
	for len(text) > 0 {
		state ^= state << 13 // xorshift
		state ^= state >> 7
		state ^= state << 17
		n := min(len(text), 8)
		for i := range n {
			text[i] = alphabet[state>>(8*i)&63]
		}
		text = text[n:]
	}
}

// Parse reads the stamp of a message. It fails with ErrDamaged.
func Parse(value []byte) (Stamp, error) {
	head, _, ok := bytes.Cut(value, []byte("\n"))
	fields := strings.Split(string(head), "\t")
	if !ok || len(fields) != 6 || fields[0] != magic || len(value) < len(head)+1+sumLength {
		return Stamp{}, fmt.Errorf("%w: %d bytes without a stamp: %.40q", ErrDamaged, len(value), value)
	}
	partition, err1 := strconv.ParseInt(fields[2], 10, 32)
	number, err2 := strconv.Atoi(fields[4])
	size, err3 := strconv.Atoi(fields[5])
	content, end := value[:len(value)-sumLength], string(value[len(value)-sumLength:])
	sum := crc32.Checksum(content, table)
	switch {
	case errors.Join(err1, err2, err3) != nil:
		return Stamp{}, fmt.Errorf("%w: stamp %q", ErrDamaged, head)
	case size != len(value):
		return Stamp{}, fmt.Errorf("%w: %d bytes of %q, want %d", ErrDamaged, len(value), head, size)
	case end != fmt.Sprintf("%08x", sum):
		return Stamp{}, fmt.Errorf("%w: checksum of %q is %08x, the message has %q", ErrDamaged, head, sum, end)
	}
	return Stamp{Topic: fields[1], Partition: int32(partition), Writer: fields[3], Number: number, Sum: sum}, nil
}

// Check reads the stamp of a message that was delivered as one of a topic and
// partition; AnyPartition if the reader does not know the partition. It fails with
// ErrDamaged, or with ErrForeign and the stamp of the message.
func Check(value []byte, topic string, partition int32) (Stamp, error) {
	s, err := Parse(value)
	if err != nil {
		return s, fmt.Errorf("in topic %s, partition %d: %w", topic, partition, err)
	}
	if s.Topic != topic || s.Partition != partition && s.Partition != AnyPartition && partition != AnyPartition {
		return s, fmt.Errorf("%w: in topic %s, partition %d: %s", ErrForeign, topic, partition, s.Origin()+" "+s.ID())
	}
	return s, nil
}

// Origin returns where the message was sent to: its topic, followed by a slash and the
// partition if the producer chose one.
func (s Stamp) Origin() string {
	if s.Partition == AnyPartition {
		return s.Topic
	}
	return fmt.Sprintf("%s/%d", s.Topic, s.Partition)
}

// ID returns a short text that no other message has: the writer, the number and the
// checksum.
func (s Stamp) ID() string { return fmt.Sprintf("%s/%d#%08x", s.Writer, s.Number, s.Sum) }

// Count counts the messages that Check failed for. It is not safe for concurrent use.
type Count struct{ Foreign, Damaged int }

// Add counts an error of Check.
func (c *Count) Add(err error) {
	switch {
	case errors.Is(err, ErrForeign):
		c.Foreign++
	case err != nil:
		c.Damaged++
	}
}
