package replicated

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// Headers of a message of the log.
const (
	headEpoch   = "Freshet-Epoch"
	headOwner   = "Freshet-Owner"   // member and instance that wrote it
	headIndex   = "Freshet-Index"   // index in the epoch; 0 is the epoch record
	headSum     = "Freshet-Sum"     // checksum of the log up to and including the message
	headPart    = "Freshet-Part"    // "2/3" of a batch that needs several messages
	headPacking = "Freshet-Packing" // compression of the batch; missing when it is not compressed
	headLog     = "Freshet-Log"     // identity of the log; on epoch records only
	headCheck   = "Freshet-Check"   // checksum of the headers above; missing in messages of earlier versions
)

// logID distinguishes a log from any other log of the same name.
type logID [16]byte

func (id logID) String() string { return hex.EncodeToString(id[:]) }

// short returns the beginning of the identity, which names a stream.
func (id logID) short() string { return hex.EncodeToString(id[:4]) }

func parseLogID(s string) (id logID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("identity of a log has %d hexadecimal digits, got %q", 2*len(id), s)
	}
	return logID(b), nil
}

// logPosition is a store's position in a log. The store keeps it with its content.
type logPosition struct {
	log   logID
	seq   uint64 // sequence of the last message applied
	epoch uint64
	index uint64 // in the epoch
	sum   uint32
}

const logPositionLen = len(logID{}) + 8 + 8 + 8 + 4

func (m logPosition) encode() []byte {
	b := append(make([]byte, 0, logPositionLen), m.log[:]...)
	b = binary.BigEndian.AppendUint64(b, m.seq)
	b = binary.BigEndian.AppendUint64(b, m.epoch)
	b = binary.BigEndian.AppendUint64(b, m.index)
	return binary.BigEndian.AppendUint32(b, m.sum)
}

func decodeLogPosition(b []byte) (m logPosition, err error) {
	if b == nil {
		return logPosition{}, nil // new store
	}
	if len(b) != logPositionLen {
		return logPosition{}, fmt.Errorf("stored log position has %d bytes, want %d", len(b), logPositionLen)
	}
	n := copy(m.log[:], b)
	m.seq = binary.BigEndian.Uint64(b[n:])
	m.epoch = binary.BigEndian.Uint64(b[n+8:])
	m.index = binary.BigEndian.Uint64(b[n+16:])
	m.sum = binary.BigEndian.Uint32(b[n+24:])
	return m, nil
}

// record is a message of the log.
//
// A message is accepted on the condition of the sequence before it. When an owner has many
// messages in flight, the first may be refused because a new owner was faster, and a later
// one accepted, because its sequence matches again. So the sequence does not make a message
// valid: a message counts only when it has the next index of the newest epoch. Every other
// message is void for all readers, and was never acknowledged to a client.
type record struct {
	seq         uint64 // in the stream
	epoch       uint64
	index       uint64
	owner       string
	sum         uint32
	part, parts int    // of a batch, from 1
	packing     string // compression of the batch that data is, or is a part of; "" for none
	log         string // set for an epoch record
	data        []byte
}

// isEpoch reports whether the record begins an ownership.
func (r *record) isEpoch() bool { return r.log != "" }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumAfter returns the checksum of the log including the record, given the one before it. It
// covers the packing, so a reader that ignores the packing rejects the compressed data.
func (r *record) sumAfter(before uint32) uint32 {
	var head [8 + 8 + 4 + 4]byte
	binary.BigEndian.PutUint64(head[:], r.index)
	binary.BigEndian.PutUint64(head[8:], r.epoch)
	binary.BigEndian.PutUint32(head[16:], uint32(r.part))
	binary.BigEndian.PutUint32(head[20:], uint32(r.parts))
	sum := crc32.Update(before, castagnoli, head[:])
	sum = crc32.Update(sum, castagnoli, []byte(r.log))
	sum = crc32.Update(sum, castagnoli, []byte(r.packing))
	return crc32.Update(sum, castagnoli, r.data)
}

// headersSum returns the checksum of the headers. A reader needs it to decide whether a message counts: the
// sum of the log does not protect a message that damage has made void, because readers skip those.
func (r *record) headersSum() uint32 {
	var numbers [8 + 8 + 4 + 4 + 4]byte
	binary.BigEndian.PutUint64(numbers[:], r.epoch)
	binary.BigEndian.PutUint64(numbers[8:], r.index)
	binary.BigEndian.PutUint32(numbers[16:], uint32(r.part))
	binary.BigEndian.PutUint32(numbers[20:], uint32(r.parts))
	binary.BigEndian.PutUint32(numbers[24:], r.sum)
	sum := crc32.Checksum(numbers[:], castagnoli)
	for _, text := range []string{r.owner, r.packing, r.log} {
		sum = crc32.Update(sum, castagnoli, append([]byte(text), 0))
	}
	return sum
}

// continues reports whether the record is the next one that counts after a position.
func (r *record) continues(m logPosition) bool {
	if r.isEpoch() {
		return r.epoch > m.epoch
	}
	return r.epoch == m.epoch && r.index == m.index+1
}

// message returns the message that publishes the record if the log ends right before it.
func (r *record) message(subject, reply string) *nats.Msg {
	h := nats.Header{
		nats.ExpectedLastSeqHdr: {strconv.FormatUint(r.seq-1, 10)},
		headEpoch:               {strconv.FormatUint(r.epoch, 10)},
		headIndex:               {strconv.FormatUint(r.index, 10)},
		headOwner:               {r.owner},
		headSum:                 {strconv.FormatUint(uint64(r.sum), 16)},
	}
	if r.parts > 1 {
		h[headPart] = []string{strconv.Itoa(r.part) + "/" + strconv.Itoa(r.parts)}
	}
	if r.packing != "" {
		h[headPacking] = []string{r.packing}
	}
	if r.isEpoch() {
		h[headLog] = []string{r.log}
	}
	h[headCheck] = []string{strconv.FormatUint(uint64(r.headersSum()), 16)}
	return &nats.Msg{Subject: subject, Reply: reply, Header: h, Data: r.data}
}

var (
	errForeign        = errors.New("message does not belong to a shard's log")
	errDamagedMessage = errors.New("message of the log is damaged on the server that returned it")
)

// parseRecord decodes a message of the log. It accepts an unknown packing, which matters
// only when the message is applied.
func parseRecord(seq uint64, h nats.Header, data []byte) (r record, err error) {
	r = record{
		seq: seq, owner: h.Get(headOwner), packing: h.Get(headPacking), log: h.Get(headLog), part: 1,
		parts: 1, data: data,
	}
	if r.epoch, err = strconv.ParseUint(h.Get(headEpoch), 10, 64); err != nil {
		return r, fmt.Errorf("%w: message %d has epoch %q", errForeign, seq, h.Get(headEpoch))
	}
	if r.index, err = strconv.ParseUint(h.Get(headIndex), 10, 64); err != nil {
		return r, fmt.Errorf("%w: message %d has index %q", errForeign, seq, h.Get(headIndex))
	}
	sum, err := strconv.ParseUint(h.Get(headSum), 16, 32)
	if err != nil {
		return r, fmt.Errorf("%w: message %d has checksum %q", errForeign, seq, h.Get(headSum))
	}
	r.sum = uint32(sum)
	if text := h.Get(headPart); text != "" {
		part, parts, _ := strings.Cut(text, "/")
		r.part, err = strconv.Atoi(part)
		if err == nil {
			r.parts, err = strconv.Atoi(parts)
		}
		if err != nil || r.part < 1 || r.part > r.parts {
			return r, fmt.Errorf("%w: message %d is part %q", errForeign, seq, text)
		}
	}
	if text := h.Get(headCheck); text != "" && text != strconv.FormatUint(uint64(r.headersSum()), 16) {
		return r, fmt.Errorf("%w: headers of message %d do not match their checksum", errDamagedMessage, seq)
	}
	return r, nil
}
