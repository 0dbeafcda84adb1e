// Package origins checks that a consumer of several topics gets every record from the
// partition that the record was produced to. It is for tests of the Kafka protocol.
//
// Fill creates topics of different sizes and partition counts. Each value contains its own
// topic, partition and offset, and a checksum. A client that is written in Go and is part of
// this module calls Reading.Add for each record. Every other client writes the records that it
// consumed to a file, in the format that CheckFile describes, so all clients share one check.
//
//   - origins.go: the content of a value, and the check of one value.
//   - fill.go: the topics and their records.
//   - reading.go: the check of all records that one consumer got.
//   - franz.go: a consumer that uses franz-go.
//   - programs.go: the clients in test/clients, and how to run them.
package origins

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"

	"freshet/test/stamp"
)

// position identifies a record: its topic, partition and offset.
type position struct {
	topic     string
	partition int32
	offset    int64
}

func (p position) String() string { return fmt.Sprintf("%s %d %d", p.topic, p.partition, p.offset) }

const (
	alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" // 6 bits a character
	sumSize  = len("01234567 ")
)

// value returns the value of the record at p: a checksum, p, and random characters up to the size. It is
// printable text without a line break, so that every tool can print it.
func value(p position, size int) []byte {
	b := make([]byte, sumSize, max(size, 64))
	b = append(b, p.String()...)
	b = append(b, ' ')
	random := rand.New(rand.NewPCG(uint64(crc32.ChecksumIEEE(b)), 0)) //nolint:gosec // test data
	for len(b) < size {
		for bits := random.Uint64(); bits > 0 && len(b) < size; bits >>= 6 {
			b = append(b, alphabet[bits&63])
		}
	}
	copy(b, fmt.Sprintf("%08x ", crc32.ChecksumIEEE(b[sumSize:])))
	return b
}

// Check returns an error unless the value is the one that was produced as this record. The error is
// stamp.ErrForeign if it was produced as another record, and stamp.ErrDamaged if its checksum is wrong.
func Check(topic string, partition int32, offset int64, value []byte) error {
	p := position{topic, partition, offset}
	sum, body, _ := bytes.Cut(value, []byte(" "))
	if string(sum) != fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)) {
		return fmt.Errorf("%w: value of %d bytes at %s has a wrong checksum: %.60q", stamp.ErrDamaged,
			len(value), p, value)
	}
	if !bytes.HasPrefix(body, []byte(p.String()+" ")) {
		return fmt.Errorf("%w: %s has the value of %.60q", stamp.ErrForeign, p, body)
	}
	return nil
}
