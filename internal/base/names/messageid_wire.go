package names

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Field numbers of Pulsar's MessageIdData. Numbers from 100 on are private to Freshet.
const (
	fieldLedger       = 1
	fieldEntry        = 2
	fieldPartition    = 3
	fieldBatch        = 4
	fieldBatchSize    = 6
	fieldRedeliveries = 101
)

const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// maxBinary is the maximum size of a decoded id. An id may contain an acknowledgement set or a
// chunk's first id, but nothing long.
const maxBinary = 1024

// AppendBinary appends the MessageIdData as the Java client encodes it: a partition only if the
// id has one, a batch index only if it is not -1, and always a batch size.
func (id MessageID) AppendBinary(dst []byte) []byte {
	dst = appendField(dst, fieldLedger, uint64(id.Ledger))
	dst = appendField(dst, fieldEntry, uint64(id.Entry))
	if id.Partition >= 0 {
		dst = appendField(dst, fieldPartition, uint64(id.Partition))
	}
	if id.Batch != -1 {
		dst = appendField(dst, fieldBatch, uint64(int64(id.Batch)))
	}
	dst = appendField(dst, fieldBatchSize, uint64(int64(id.BatchSize)))
	if id.Redeliveries > 0 {
		dst = appendField(dst, fieldRedeliveries, uint64(id.Redeliveries))
	}
	return dst
}

func appendField(dst []byte, field int, value uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(field)<<3|wireVarint)
	return binary.AppendUvarint(dst, value)
}

// AppendBase64 appends the padded standard base64 of AppendBinary.
func (id MessageID) AppendBase64(dst []byte) []byte {
	var buf [80]byte
	return base64.StdEncoding.AppendEncode(dst, id.AppendBinary(buf[:0]))
}

// Base64 returns the base64 form; see AppendBase64.
func (id MessageID) Base64() string {
	var buf [112]byte
	return string(id.AppendBase64(buf[:0]))
}

// DecodeMessageID decodes the base64 form: standard or URL alphabet, padded or not.
func DecodeMessageID(s string) (MessageID, error) {
	trimmed := strings.TrimRight(s, "=")
	if len(s)-len(trimmed) > 2 || base64.RawStdEncoding.DecodedLen(len(trimmed)) > maxBinary {
		return MessageID{}, fmt.Errorf("%w: it is too long, or base64 with wrong padding", ErrMessageID)
	}
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(trimmed, "-_") {
		encoding = base64.RawURLEncoding
	}
	var buf [96]byte
	raw, err := encoding.AppendDecode(buf[:0], []byte(trimmed))
	if err != nil {
		return MessageID{}, fmt.Errorf("%w: it is not base64", ErrMessageID)
	}
	return ParseBinaryMessageID(raw)
}

// ParseBinaryMessageID decodes a MessageIdData. It skips unknown fields.
func ParseBinaryMessageID(b []byte) (MessageID, error) {
	id := MessageID{Partition: -1, Batch: -1}
	if len(b) > maxBinary {
		return id, fmt.Errorf("%w: it is too long", ErrMessageID)
	}
	var seen [2]bool
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return id, fmt.Errorf("%w: it has a damaged field tag", ErrMessageID)
		}
		b = b[n:]
		field, wire := tag>>3, tag&7
		if wire != wireVarint {
			rest, ok := skipField(b, wire)
			if !ok || field == fieldLedger || field == fieldEntry {
				return id, fmt.Errorf("%w: its field %d is damaged", ErrMessageID, field)
			}
			b = rest
			continue
		}
		value, n := binary.Uvarint(b)
		if n <= 0 {
			return id, fmt.Errorf("%w: its field %d is damaged", ErrMessageID, field)
		}
		b = b[n:]
		if err := id.setField(field, value, &seen); err != nil {
			return id, err
		}
	}
	if !seen[0] || !seen[1] {
		return id, fmt.Errorf("%w: its ledger or entry is missing", ErrMessageID)
	}
	return id, nil
}

func (id *MessageID) setField(field, value uint64, seen *[2]bool) error {
	switch field {
	case fieldLedger:
		id.Ledger, seen[0] = int64(value), true
		return nil
	case fieldEntry:
		id.Entry, seen[1] = int64(value), true
		return nil
	case fieldPartition, fieldBatch, fieldBatchSize:
		v := int64(value)
		if v < math.MinInt32 || v > math.MaxInt32 {
			return fmt.Errorf("%w: its field %d is out of range", ErrMessageID, field)
		}
		switch field {
		case fieldPartition:
			id.Partition = max(int32(v), -1)
		case fieldBatch:
			id.Batch = max(int32(v), -1)
		default:
			id.BatchSize = int32(v)
		}
	case fieldRedeliveries:
		if value > math.MaxUint32 {
			return fmt.Errorf("%w: its field %d is out of range", ErrMessageID, field)
		}
		id.Redeliveries = uint32(value)
	}
	return nil
}

// skipField skips a field that is not a varint. It rejects groups, which protobuf has
// deprecated.
func skipField(b []byte, wire uint64) ([]byte, bool) {
	var size uint64
	switch wire {
	case wireFixed64:
		size = 8
	case wireFixed32:
		size = 4
	case wireBytes:
		var n int
		if size, n = binary.Uvarint(b); n <= 0 {
			return nil, false
		}
		b = b[n:]
	default:
		return nil, false
	}
	if size > uint64(len(b)) {
		return nil, false
	}
	return b[size:], true
}
