package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// A message is encoded as version, kind, id, position of the first record (uvarint) and
// number of records (uvarint); then each record as length (uvarint) and bytes, or for a
// snapshot the JSON of its pointer (snapshot.go); then a CRC-32C of all that.
const (
	messageVersion = 1
	kindRecords    = 'r'
	kindSnapshot   = 's'
	kindFence      = 'f' // ends a stream: the journal continues in another one
	idBytes        = 16
	checksumBytes  = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// message is one message of a journal's stream.
type message struct {
	seq   uint64 // its sequence in the stream
	kind  byte
	id    [idBytes]byte // random, identifies the publisher's own message
	first uint64        // position of the first record; for a snapshot, of the next one
	count uint64
	body  []byte // the encoded records, or the JSON of the snapshot pointer

	before link // the link before the first record, as the writer knew it; from a header
}

// last returns the position of the last record at or before the message.
func (m *message) last() uint64 { return m.first + m.count - 1 }

func encodeRecords(id [idBytes]byte, first uint64, records [][]byte) []byte {
	size := 2 + idBytes + 2*binary.MaxVarintLen64 + checksumBytes
	for _, r := range records {
		size += binary.MaxVarintLen32 + len(r)
	}
	b := header(make([]byte, 0, size), kindRecords, id, first, uint64(len(records)))
	for _, r := range records {
		b = binary.AppendUvarint(b, uint64(len(r)))
		b = append(b, r...)
	}
	return seal(b)
}

func encodeSnapshot(id [idBytes]byte, next uint64, body []byte) []byte {
	return seal(append(header(nil, kindSnapshot, id, next, 0), body...))
}

// encodeFence encodes the message that ends a stream. It has no record.
func encodeFence(id [idBytes]byte, next uint64) []byte {
	return seal(header(nil, kindFence, id, next, 0))
}

func header(b []byte, kind byte, id [idBytes]byte, first, count uint64) []byte {
	b = append(b, messageVersion, kind)
	b = append(b, id[:]...)
	b = binary.AppendUvarint(b, first)
	return binary.AppendUvarint(b, count)
}

func seal(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decode decodes a message. Its body aliases data.
func decode(seq uint64, data []byte) (*message, error) {
	bad := func(what string) error {
		return fmt.Errorf("%w: journal message %d: %s", engine.ErrCorrupt, seq, what)
	}
	if len(data) < 2+idBytes+checksumBytes {
		return nil, bad("too short")
	}
	data, sum := data[:len(data)-checksumBytes], data[len(data)-checksumBytes:]
	if binary.BigEndian.Uint32(sum) != crc32.Checksum(data, castagnoli) {
		return nil, bad("checksum does not match")
	}
	if data[0] != messageVersion {
		return nil, fmt.Errorf("%w: journal message %d has format %d", engine.ErrNewerFormat, seq, data[0])
	}
	m := &message{seq: seq, kind: data[1]}
	r := wire.NewReader(data[2+copy(m.id[:], data[2:]):])
	m.first, m.count = r.Uvarint(), r.Uvarint()
	m.body = r.Rest()
	if r.Err() != nil || m.first == 0 || (m.kind == kindRecords) == (m.count == 0) {
		return nil, bad("positions are inconsistent")
	}
	return m, nil
}

// decodeStored decodes a message of a stream.
func decodeStored(found storedMessage) (*message, error) {
	m, err := decode(found.seq, found.data)
	if err != nil {
		return nil, err
	}
	m.before, err = parseLink(found.sum)
	return m, err
}

// records calls visit for each record after a position.
func (m *message) records(after uint64, visit func(position uint64, record []byte) error) error {
	r := wire.NewReader(m.body)
	for position := m.first; position <= m.last(); position++ {
		record := r.LengthPrefixed()
		if r.Err() != nil {
			return fmt.Errorf("%w: journal message %d ends within record %d", engine.ErrCorrupt, m.seq, position)
		}
		if position <= after {
			continue
		}
		if err := visit(position, record); err != nil {
			return err
		}
	}
	return nil
}
