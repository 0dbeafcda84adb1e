package pebble

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// A stored message is
//
//	crc32c | flags | publish time (7) | extra | cumulative bytes (8) | extended header | fields | payload
//
// where the cumulative bytes count every value ever written to the partition up to and
// including this one, so that the bytes between two entries are one subtraction. The
// checksum covers fields and payload first and then the key and the header, so that most
// of it is computed before committer.mu is locked.
//
// Flags in extra announce the extended header (since format 3). It contains the largest
// timestamp of the partition up to this record, if that is not the publish time; and for a
// batch its format, the number of its messages and their own largest timestamp. A batch
// has its body in place of fields and payload.
const (
	recordHeaderLen = 4 + 1 + 8 + 8
	maxTimeLen      = 8
	batchHeadLen    = maxTimeLen + 1 + 4 + 8

	extraOffset = 12 // offset of extra: the last byte of the publish time, which was 0 before format 3

	hasKey        = 1 << 0
	hasProperties = 1 << 1
	hasEventTime  = 1 << 2
	hasSchema     = 1 << 3
	hasProducer   = 1 << 4
	hasSequence   = 1 << 5
	hasDeliverAt  = 1 << 6
	hasDedup      = 1 << 7 // since format 2, see impliedDedup

	extraBatch       = 1 << 0
	extraMaxTime     = 1 << 1
	extraNullPayload = 1 << 2
	extraEmptyKey    = 1 << 3
	extraNullable    = 1 << 4 // the length of a property value is stored plus one, 0 for null
	extraKnown       = extraBatch | extraMaxTime | extraNullPayload | extraEmptyKey | extraNullable
)

// extendedHeadLen returns the length of the extended header.
func extendedHeadLen(extra byte) int {
	switch {
	case extra&extraBatch != 0:
		return batchHeadLen
	case extra&extraMaxTime != 0:
		return maxTimeLen
	}
	return 0
}

// impliedDedup returns the deduplication key of a record without an explicit one: the
// producer and the sequence, if it has both. Format 1 had no explicit keys, and most
// messages of later formats need none.
func impliedDedup(m *engine.Message) engine.DedupKey {
	if m.Producer == "" || !m.HasSequence {
		return engine.DedupKey{}
	}
	return engine.DedupKey{Producer: m.Producer, Sequence: m.Sequence}
}

// draft is a message that is encoded except for the values that depend on its entry.
type draft struct {
	msg    *engine.Message
	fields []byte
	flags  byte
	extra  byte
	sum    uint32
}

// size returns the record's length without the extended header.
func (d *draft) size() int { return recordHeaderLen + len(d.fields) + len(d.msg.Payload) }

// prepare encodes everything that does not depend on the message's entry. It appends to
// scratch, which may be nil.
func prepare(m *engine.Message, scratch []byte) draft {
	d := draft{msg: m}
	if m.NullPayload {
		d.extra |= extraNullPayload
	}
	if m.EmptyKey {
		d.extra |= extraEmptyKey
	}
	p := wire.Writer(scratch)
	if m.Key != "" {
		d.flags |= hasKey
		p.Text(m.Key)
	}
	if len(m.Properties) > 0 {
		d.flags |= hasProperties
		p.Uvarint(uint64(len(m.Properties)))
		if slices.ContainsFunc(m.Properties, func(p engine.Property) bool { return p.Null }) {
			d.extra |= extraNullable
		}
		for i := range m.Properties {
			p.Text(m.Properties[i].Key)
			packValue(&p, &m.Properties[i], d.extra)
		}
	}
	if m.EventTime != 0 {
		d.flags |= hasEventTime
		p.Varint(m.EventTime)
	}
	if m.SchemaVersion != engine.NoSchema {
		d.flags |= hasSchema
		p.Varint(m.SchemaVersion)
	}
	if m.Producer != "" {
		d.flags |= hasProducer
		p.Text(m.Producer)
	}
	if m.HasSequence {
		d.flags |= hasSequence
		p.Uvarint(m.Sequence)
	}
	if m.DeliverAt != 0 {
		d.flags |= hasDeliverAt
		p.Varint(m.DeliverAt)
	}
	if m.Dedup != impliedDedup(m) {
		d.flags |= hasDedup
		p.Text(m.Dedup.Producer)
		p.Uvarint(m.Dedup.Sequence)
	}
	d.fields = p
	d.sum = crc32.Update(crc32.Update(0, castagnoli, d.fields), castagnoli, m.Payload)
	return d
}

// put writes the record into value, whose length must be size plus that of the extended
// header.
func (d *draft) put(key, value []byte, extra byte, publish, cum, maxTime int64) {
	value[4] = d.flags
	body := putHead(value, extra, publish, cum, maxTime)
	n := copy(value[body:], d.fields)
	copy(value[body+n:], d.msg.Payload)
	seal(key, value, body, d.sum)
}

// putHead writes the header of a record except its flags, and returns the offset of the
// body.
func putHead(value []byte, extra byte, publish, cum, maxTime int64) (body int) {
	binary.LittleEndian.PutUint64(value[5:], uint64(publish))
	value[extraOffset] = extra
	binary.LittleEndian.PutUint64(value[13:], uint64(cum))
	if extra&(extraBatch|extraMaxTime) != 0 {
		binary.LittleEndian.PutUint64(value[recordHeaderLen:], uint64(maxTime))
	}
	return recordHeaderLen + extendedHeadLen(extra)
}

// seal writes the checksum of a record; sum is that of its body.
func seal(key, value []byte, body int, sum uint32) {
	sum = crc32.Update(crc32.Update(sum, castagnoli, key), castagnoli, value[4:body])
	binary.LittleEndian.PutUint32(value, sum)
}

// packValue encodes the value of a property.
func packValue(w *wire.Writer, property *engine.Property, extra byte) {
	if extra&extraNullable == 0 {
		w.Text(property.Value)
		return
	}
	if property.Null {
		w.Uvarint(0)
		return
	}
	w.Uvarint(uint64(len(property.Value)) + 1)
	*w = append(*w, property.Value...)
}

// value decodes the value of a property.
func (u *unpacker) value(property *engine.Property, extra byte) {
	if extra&extraNullable == 0 {
		property.Value = u.Text()
		return
	}
	n := u.Uvarint()
	if n == 0 {
		property.Null = u.Err() == nil
		return
	}
	if n-1 > uint64(u.Len()) {
		u.Fail(wire.ErrTruncated)
		return
	}
	property.Value = string(u.Bytes(int(n - 1)))
}

// recordHead is the decoded header of a record.
type recordHead struct {
	publish int64
	cum     int64 // including the record itself
	size    int64
	maxTime int64  // largest timestamp of the partition up to this record
	count   uint64 // number of messages: may be more than 1 in a batch
	body    int    // offset of the body in the value
	isBatch bool
	format  engine.BatchFormat
	ownMax  int64 // largest timestamp of a batch's messages
}

// verify checks the checksum of a stored record and decodes its header.
func verify(key, value []byte) (recordHead, error) {
	if len(value) < recordHeaderLen {
		return recordHead{}, corrupt(key, "record is too short for its header")
	}
	extra := value[extraOffset]
	head := recordHead{body: recordHeaderLen + extendedHeadLen(extra), size: int64(len(value)), count: 1}
	if extra&^extraKnown != 0 {
		return recordHead{}, corrupt(key, fmt.Sprintf("record has unknown flags %#x: it is damaged, or a newer "+
			"version of the server wrote it", extra&^extraKnown))
	}
	if len(value) < head.body {
		return recordHead{}, corrupt(key, "record is too short for its header")
	}
	sum := crc32.Update(0, castagnoli, value[head.body:])
	sum = crc32.Update(crc32.Update(sum, castagnoli, key), castagnoli, value[4:head.body])
	if sum != binary.LittleEndian.Uint32(value) {
		return recordHead{}, corrupt(key, "checksum does not match")
	}
	head.publish = int64(binary.LittleEndian.Uint64(value[5:]) &^ (0xff << 56))
	head.cum = int64(binary.LittleEndian.Uint64(value[13:]))
	head.maxTime = head.publish
	if extra&(extraBatch|extraMaxTime) != 0 {
		head.maxTime = int64(binary.LittleEndian.Uint64(value[recordHeaderLen:]))
	}
	if extra&extraBatch != 0 {
		more := value[recordHeaderLen+maxTimeLen:]
		head.isBatch, head.format = true, engine.BatchFormat(more[0])
		head.count = uint64(binary.LittleEndian.Uint32(more[1:]))
		head.ownMax = int64(binary.LittleEndian.Uint64(more[5:]))
		if head.count == 0 {
			return recordHead{}, corrupt(key, "batch has no messages")
		}
	}
	return head, nil
}

// at returns the head of the i-th message of a batch. Each message has an equal share of
// the batch's bytes, and the shares add up exactly.
func (h *recordHead) at(i uint64) recordHead {
	if h.count == 1 {
		return *h
	}
	before, behind := h.size*int64(i)/int64(h.count), h.size*int64(i+1)/int64(h.count)
	one := *h
	one.size, one.cum = behind-before, h.cum-h.size+behind
	return one
}

// decode decodes a record of one message. The result shares no memory with value.
func decode(key, value []byte, id engine.MessageID) (engine.Record, error) {
	head, err := verify(key, value)
	if err != nil {
		return engine.Record{}, err
	}
	if head.isBatch {
		return engine.Record{}, corrupt(key, "record is a batch where one message was expected")
	}
	r := engine.Record{ID: id, PublishTime: head.publish}
	body := append([]byte(nil), value[head.body:]...)
	if !decodeMessage(&r.Message, value[4], value[extraOffset], body) {
		return engine.Record{}, corrupt(key, "record ends before its last field")
	}
	return r, nil
}

// decodeMessage decodes fields and payload, and keeps references to body. It reports
// whether all fields were complete.
func decodeMessage(r *engine.Message, flags, extra byte, body []byte) bool {
	r.NullPayload, r.EmptyKey = extra&extraNullPayload != 0, extra&extraEmptyKey != 0
	r.SchemaVersion = engine.NoSchema
	u := unpack(body)
	if flags&hasKey != 0 {
		r.Key = u.Text()
	}
	if flags&hasProperties != 0 {
		r.Properties = make([]engine.Property, u.Count())
		for i := range r.Properties {
			r.Properties[i].Key = u.Text()
			u.value(&r.Properties[i], extra)
		}
	}
	if flags&hasEventTime != 0 {
		r.EventTime = u.Varint()
	}
	if flags&hasSchema != 0 {
		r.SchemaVersion = u.Varint()
	}
	if flags&hasProducer != 0 {
		r.Producer = u.Text()
	}
	if flags&hasSequence != 0 {
		r.Sequence, r.HasSequence = u.Uvarint(), true
	}
	if flags&hasDeliverAt != 0 {
		r.DeliverAt = u.Varint()
	}
	if flags&hasDedup != 0 {
		r.Dedup = engine.DedupKey{Producer: u.Text(), Sequence: u.Uvarint()}
	} else {
		r.Dedup = impliedDedup(r)
	}
	r.Payload = u.Rest()
	return u.Err() == nil
}
