package records

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// HeadSize is where the records of a batch begin.
const HeadSize = 61

// The places of a head's fields.
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

	// lengthFrom is where the bytes begin that the length counts.
	lengthFrom = 12
)

// Bits of the attributes.
const (
	codecBits        = 0x07
	appendTimeBit    = 0x08
	transactionalBit = 0x10
	controlBit       = 0x20
	deleteHorizonBit = 0x40
	knownBits        = codecBits | appendTimeBit | transactionalBit | controlBit | deleteHorizonBit
)

// NoProducer is the ProducerID of a batch without one.
const NoProducer = -1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Head is what stands before the records of a batch.
type Head struct {
	BaseOffset    int64
	Size          int // of the whole batch in bytes, head included
	LeaderEpoch   int32
	Attributes    uint16
	LastDelta     int32
	FirstTime     int64 // timestamp that the records' are relative to
	MaxTime       int64 // largest timestamp of the records
	ProducerID    int64 // NoProducer for none
	ProducerEpoch int16
	Sequence      int32 // of the first record; -1 without a producer
	Count         int32
}

// Codec returns what packs the records.
func (h *Head) Codec() Codec { return Codec(h.Attributes & codecBits) }

// AppendTime says that all records have the batch's MaxTime as their timestamp.
func (h *Head) AppendTime() bool { return h.Attributes&appendTimeBit != 0 }

// Transactional says that the batch belongs to a transaction.
func (h *Head) Transactional() bool { return h.Attributes&transactionalBit != 0 }

// Control says that the batch holds a marker instead of messages.
func (h *Head) Control() bool { return h.Attributes&controlBit != 0 }

// ReadHead reads the head of the batch that data begins with, which must be
// there whole. It does not look at the checksum or the records.
func ReadHead(data []byte) (Head, error) {
	if len(data) < HeadSize {
		return Head{}, fmt.Errorf("%w: %d bytes are less than a head of %d", ErrCorrupt, len(data), HeadSize)
	}
	// Formats 0 and 1 have their magic at the same place.
	if magic := data[atMagic]; magic != 2 {
		return Head{}, fmt.Errorf(
			"%w: record format %d is not served, only 2; use a client that speaks Kafka 0.11 or newer",
			ErrInvalid, magic)
	}
	length := int64(int32(binary.BigEndian.Uint32(data[atLength:]))) //nolint:gosec // the wire's numbers are signed
	if length < HeadSize-lengthFrom || length > int64(len(data)-lengthFrom) {
		return Head{}, fmt.Errorf("%w: the length says %d bytes, %d are there", ErrCorrupt, length,
			len(data)-lengthFrom)
	}
	return Head{
		BaseOffset:    int64At(data, atBaseOffset),
		Size:          int(length) + lengthFrom,
		LeaderEpoch:   int32At(data, atLeaderEpoch),
		Attributes:    binary.BigEndian.Uint16(data[atAttributes:]),
		LastDelta:     int32At(data, atLastDelta),
		FirstTime:     int64At(data, atFirstTime),
		MaxTime:       int64At(data, atMaxTime),
		ProducerID:    int64At(data, atProducer),
		ProducerEpoch: int16(binary.BigEndian.Uint16(data[atProducerEpoch:])), //nolint:gosec // the wire's numbers are signed
		Sequence:      int32At(data, atSequence),
		Count:         int32At(data, atCount),
	}, nil
}

// Place writes where in a log a batch stands. The checksum does not cover it.
func Place(batch []byte, baseOffset int64, leaderEpoch int32) {
	putInt64(batch, atBaseOffset, baseOffset)
	putInt32(batch, atLeaderEpoch, leaderEpoch)
}

// StampAppendTime makes now the timestamp of all records of a batch.
func StampAppendTime(batch []byte, now int64) {
	attributes := binary.BigEndian.Uint16(batch[atAttributes:])
	binary.BigEndian.PutUint16(batch[atAttributes:], attributes|appendTimeBit)
	putInt64(batch, atMaxTime, now)
	seal(batch)
}

// intact says whether the checksum of a whole batch is right.
func intact(batch []byte) bool {
	return binary.BigEndian.Uint32(batch[atChecksum:]) == checksum(batch)
}

// seal writes the checksum of a whole batch.
func seal(batch []byte) {
	binary.BigEndian.PutUint32(batch[atChecksum:], checksum(batch))
}

func checksum(batch []byte) uint32 { return crc32.Checksum(batch[atAttributes:], castagnoli) }

func int64At(b []byte, at int) int64 {
	return int64(binary.BigEndian.Uint64(b[at:])) //nolint:gosec // the wire's numbers are signed
}

func int32At(b []byte, at int) int32 {
	return int32(binary.BigEndian.Uint32(b[at:])) //nolint:gosec // the wire's numbers are signed
}

func putInt64(b []byte, at int, v int64) {
	binary.BigEndian.PutUint64(b[at:], uint64(v)) //nolint:gosec // the wire's numbers are signed
}

func putInt32(b []byte, at int, v int32) {
	binary.BigEndian.PutUint32(b[at:], uint32(v)) //nolint:gosec // the wire's numbers are signed
}
