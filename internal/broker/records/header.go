package records

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// BatchHeaderSize is the size of a batch header in bytes. The records follow it.
const BatchHeaderSize = 61

// Offsets of the header's fields in bytes.
const (
	atBaseOffset    = 0
	atLength        = 8
	atLeaderEpoch   = 12
	atMagic         = 16
	atChecksum      = 17
	atAttributes    = 21
	atLastDelta     = 23
	atFirstTime     = 27
	atMaxTime       = 35
	atProducer      = 43
	atProducerEpoch = 51
	atSequence      = 53
	atCount         = 57

	// lengthBase is the offset of the first byte that the length field counts.
	lengthBase = 12
)

// Bits of the attributes field.
const (
	codecBits        = 0x07
	appendTimeBit    = 0x08
	transactionalBit = 0x10
	controlBit       = 0x20
	deleteHorizonBit = 0x40
	knownBits        = codecBits | appendTimeBit | transactionalBit | controlBit | deleteHorizonBit
)

// NoProducer is the ProducerID of a batch without an idempotent producer.
const NoProducer = -1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// BatchHeader is the header of a batch.
type BatchHeader struct {
	BaseOffset    int64
	Size          int // size of the whole batch in bytes, including the header
	LeaderEpoch   int32
	Attributes    uint16
	LastDelta     int32
	FirstTime     int64 // base of the records' timestamp deltas
	MaxTime       int64 // largest timestamp of the records
	ProducerID    int64 // NoProducer for none
	ProducerEpoch int16
	Sequence      int32 // sequence number of the first record; -1 without a producer
	Count         int32
}

// Codec returns the compression codec of the records.
func (h *BatchHeader) Codec() Codec { return Codec(h.Attributes & codecBits) }

// AppendTime reports whether MaxTime is the timestamp of every record (LogAppendTime).
func (h *BatchHeader) AppendTime() bool { return h.Attributes&appendTimeBit != 0 }

// Transactional reports whether the batch belongs to a transaction.
func (h *BatchHeader) Transactional() bool { return h.Attributes&transactionalBit != 0 }

// Control reports whether the batch holds a control record instead of messages.
func (h *BatchHeader) Control() bool { return h.Attributes&controlBit != 0 }

// ReadBatchHeader reads the header of the batch that data begins with. It fails unless data holds the
// whole batch. It does not check the checksum or the records.
func ReadBatchHeader(data []byte) (BatchHeader, error) {
	if len(data) < BatchHeaderSize {
		return BatchHeader{}, fmt.Errorf("%w: got %d bytes, the batch header alone has %d", ErrCorrupt, len(data),
			BatchHeaderSize)
	}
	// Formats 0 and 1 have their magic byte at the same offset.
	if magic := data[atMagic]; magic != 2 {
		return BatchHeader{}, fmt.Errorf(
			"%w: record format %d is not supported, only 2; use a client for Kafka 0.11 or newer",
			ErrInvalid, magic)
	}
	length := int64(int32At(data, atLength))
	if length < BatchHeaderSize-lengthBase || length > int64(len(data)-lengthBase) {
		return BatchHeader{}, fmt.Errorf("%w: length field is %d bytes, %d arrived", ErrCorrupt, length,
			len(data)-lengthBase)
	}
	return BatchHeader{
		BaseOffset:    int64At(data, atBaseOffset),
		Size:          int(length) + lengthBase,
		LeaderEpoch:   int32At(data, atLeaderEpoch),
		Attributes:    binary.BigEndian.Uint16(data[atAttributes:]),
		LastDelta:     int32At(data, atLastDelta),
		FirstTime:     int64At(data, atFirstTime),
		MaxTime:       int64At(data, atMaxTime),
		ProducerID:    int64At(data, atProducer),
		ProducerEpoch: int16At(data, atProducerEpoch),
		Sequence:      int32At(data, atSequence),
		Count:         int32At(data, atCount),
	}, nil
}

// SetBaseOffset sets the base offset and the leader epoch of a batch. The checksum does not cover them.
func SetBaseOffset(batch []byte, baseOffset int64, leaderEpoch int32) {
	putInt64(batch, atBaseOffset, baseOffset)
	putInt32(batch, atLeaderEpoch, leaderEpoch)
}

// StampAppendTime sets now as the timestamp of all records of a batch (LogAppendTime).
func StampAppendTime(batch []byte, now int64) {
	attributes := binary.BigEndian.Uint16(batch[atAttributes:])
	binary.BigEndian.PutUint16(batch[atAttributes:], attributes|appendTimeBit)
	putInt64(batch, atMaxTime, now)
	writeChecksum(batch)
}

// writeAttributes writes the attributes. The caller writes the checksum.
func (h *BatchHeader) writeAttributes(batch []byte) {
	binary.BigEndian.PutUint16(batch[atAttributes:], h.Attributes)
}

// checksumValid reports whether the checksum of a whole batch is correct.
func checksumValid(batch []byte) bool {
	return binary.BigEndian.Uint32(batch[atChecksum:]) == checksum(batch)
}

// writeChecksum writes the checksum of a whole batch.
func writeChecksum(batch []byte) {
	binary.BigEndian.PutUint32(batch[atChecksum:], checksum(batch))
}

func checksum(batch []byte) uint32 { return crc32.Checksum(batch[atAttributes:], castagnoli) }

func int64At(b []byte, at int) int64 {
	return int64(binary.BigEndian.Uint64(b[at:])) //nolint:gosec // numbers on the wire are signed
}

func int16At(b []byte, at int) int16 {
	return int16(binary.BigEndian.Uint16(b[at:])) //nolint:gosec // numbers on the wire are signed
}

func int32At(b []byte, at int) int32 {
	return int32(binary.BigEndian.Uint32(b[at:])) //nolint:gosec // numbers on the wire are signed
}

func putInt64(b []byte, at int, v int64) {
	binary.BigEndian.PutUint64(b[at:], uint64(v)) //nolint:gosec // numbers on the wire are signed
}

func putInt32(b []byte, at int, v int32) {
	binary.BigEndian.PutUint32(b[at:], uint32(v)) //nolint:gosec // numbers on the wire are signed
}
