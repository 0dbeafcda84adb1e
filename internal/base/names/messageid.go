package names

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MessageID is the id of a message as clients see it. Ledger is the incarnation number of the
// topic, Entry the position in its partition.
//
// It has two forms: four numbers separated by colons (the string form of
// docs/spec/messages.md#message-ids), and the base64 of a Pulsar MessageIdData, see
// AppendBase64. Only the second form contains Redeliveries, in a private field that Pulsar's
// decoders skip.
type MessageID struct {
	Ledger       int64
	Entry        int64
	Partition    int32 // -1 when the topic is not partitioned
	Batch        int32 // index in a batch; 0 in Freshet's ids, -1 in ids of unbatched Pulsar messages
	BatchSize    int32 // 1 in Freshet's ids
	Redeliveries uint32
}

// Two ids that are positions and not messages.
var (
	EarliestID = MessageID{Ledger: -1, Entry: -1, Partition: -1, Batch: -1}
	LatestID   = MessageID{Ledger: math.MaxInt64, Entry: math.MaxInt64, Partition: -1, Batch: -1}
)

// ErrMessageID is wrapped by every error about a malformed message id.
var ErrMessageID = errors.New("malformed message id")

// IsEarliest reports whether id means the first message of a topic.
func (id MessageID) IsEarliest() bool {
	return id.Ledger == EarliestID.Ledger && id.Entry == EarliestID.Entry
}

// IsLatest reports whether id means the position after the last message.
func (id MessageID) IsLatest() bool {
	return id.Ledger == LatestID.Ledger && id.Entry == LatestID.Entry
}

// String returns the string form: ledger:entry:partition:batch.
func (id MessageID) String() string {
	return string(id.AppendText(make([]byte, 0, 48)))
}

// AppendText appends the string form to dst.
func (id MessageID) AppendText(dst []byte) []byte {
	dst = strconv.AppendInt(dst, id.Ledger, 10)
	dst = append(dst, ':')
	dst = strconv.AppendInt(dst, id.Entry, 10)
	dst = append(dst, ':')
	dst = strconv.AppendInt(dst, int64(id.Partition), 10)
	dst = append(dst, ':')
	return strconv.AppendInt(dst, int64(id.Batch), 10)
}

// ParseMessageID reads the string form with two, three or four parts; a
// missing partition is -1 and a missing batch index 0.
func ParseMessageID(s string) (MessageID, error) {
	id := MessageID{Partition: -1}
	if len(s) > 4*20+3 {
		return id, fmt.Errorf("%w: it is too long", ErrMessageID)
	}
	rest, n := s, 0
	for more := true; more; n++ {
		var part string
		part, rest, more = strings.Cut(rest, ":")
		bits := 64
		if n >= 2 {
			bits = 32
		}
		v, err := parseNumber(part, bits)
		if err != nil {
			return id, fmt.Errorf("%w: %q is not of the form ledger:entry:partition:batch", ErrMessageID, s)
		}
		switch n {
		case 0:
			id.Ledger = v
		case 1:
			id.Entry = v
		case 2:
			id.Partition = int32(v)
		case 3:
			id.Batch = int32(v)
		default:
			return id, fmt.Errorf("%w: %q has more than the four parts ledger:entry:partition:batch", ErrMessageID, s)
		}
	}
	if n < 2 {
		return id, fmt.Errorf("%w: %q has fewer than the two parts ledger:entry", ErrMessageID, s)
	}
	return id, nil
}

// parseNumber accepts only the output of strconv.AppendInt: no plus sign and no leading zeros,
// so that every id has exactly one string form.
func parseNumber(s string, bits int) (int64, error) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] == '+' || (digits[0] == '0' && len(s) > 1) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(s, 10, bits)
}
