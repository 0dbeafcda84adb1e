package pebble

import (
	"encoding/binary"
	"hash/crc32"

	"freshet/internal/engine"
)

// A stored message is
//
//	crc32c | flags | publish time (8) | cumulative bytes (8) | fields | payload
//
// where the cumulative bytes count every value ever written to the partition up
// to and including this one: the bytes between two entries are one subtraction.
// The checksum covers fields and payload first and then the key and the header,
// so that all but a few bytes of it are computed before the commit lock.
const (
	recordHeaderLen = 4 + 1 + 8 + 8

	hasKey        = 1 << 0
	hasProperties = 1 << 1
	hasEventTime  = 1 << 2
	hasSchema     = 1 << 3
	hasProducer   = 1 << 4
	hasSequence   = 1 << 5
	hasDeliverAt  = 1 << 6
	hasDedup      = 1 << 7 // since format 2, see impliedDedup
)

// impliedDedup is the deduplication key of a record that does not spell one
// out: the producer and the sequence, when there are both. Format 1 knew no
// other, and most messages of format 2 need no other.
func impliedDedup(m *engine.Message) engine.DedupKey {
	if m.Producer == "" || !m.HasSequence {
		return engine.DedupKey{}
	}
	return engine.DedupKey{Producer: m.Producer, Sequence: m.Sequence}
}

// draft is a message made ready for its place in the log.
type draft struct {
	msg    *engine.Message
	fields []byte
	flags  byte
	sum    uint32
}

func (d *draft) size() int { return recordHeaderLen + len(d.fields) + len(d.msg.Payload) }

// prepare encodes everything that does not depend on the message's place;
// scratch is appended to and may be nil.
func prepare(m *engine.Message, scratch []byte) draft {
	d := draft{msg: m}
	p := packer(scratch)
	if m.Key != "" {
		d.flags |= hasKey
		p.str(m.Key)
	}
	if len(m.Properties) > 0 {
		d.flags |= hasProperties
		p.uint(uint64(len(m.Properties)))
		for i := range m.Properties {
			p.str(m.Properties[i].Key)
			p.str(m.Properties[i].Value)
		}
	}
	if m.EventTime != 0 {
		d.flags |= hasEventTime
		p.int(m.EventTime)
	}
	if m.SchemaVersion != engine.NoSchema {
		d.flags |= hasSchema
		p.int(m.SchemaVersion)
	}
	if m.Producer != "" {
		d.flags |= hasProducer
		p.str(m.Producer)
	}
	if m.HasSequence {
		d.flags |= hasSequence
		p.uint(m.Sequence)
	}
	if m.DeliverAt != 0 {
		d.flags |= hasDeliverAt
		p.int(m.DeliverAt)
	}
	if m.Dedup != impliedDedup(m) {
		d.flags |= hasDedup
		p.str(m.Dedup.Producer)
		p.uint(m.Dedup.Sequence)
	}
	d.fields = p
	d.sum = crc32.Update(crc32.Update(0, castagnoli, d.fields), castagnoli, m.Payload)
	return d
}

// put writes the record into value, which has exactly size bytes.
func (d *draft) put(key, value []byte, publish, cum int64) {
	value[4] = d.flags
	binary.LittleEndian.PutUint64(value[5:], uint64(publish))
	binary.LittleEndian.PutUint64(value[13:], uint64(cum))
	n := copy(value[recordHeaderLen:], d.fields)
	copy(value[recordHeaderLen+n:], d.msg.Payload)
	sum := crc32.Update(crc32.Update(d.sum, castagnoli, key), castagnoli, value[4:recordHeaderLen])
	binary.LittleEndian.PutUint32(value, sum)
}

// recordHead is the part of a record that searches need.
type recordHead struct {
	publish int64
	cum     int64 // including the record itself
	size    int64
}

// verify checks a stored record against its checksum.
func verify(key, value []byte) (recordHead, error) {
	if len(value) < recordHeaderLen {
		return recordHead{}, corrupt(key, "record is too short for its header")
	}
	sum := crc32.Update(0, castagnoli, value[recordHeaderLen:])
	sum = crc32.Update(crc32.Update(sum, castagnoli, key), castagnoli, value[4:recordHeaderLen])
	if sum != binary.LittleEndian.Uint32(value) {
		return recordHead{}, corrupt(key, "checksum does not match")
	}
	return recordHead{
		publish: int64(binary.LittleEndian.Uint64(value[5:])),
		cum:     int64(binary.LittleEndian.Uint64(value[13:])),
		size:    int64(len(value)),
	}, nil
}

// decode reads a whole record; the result shares no memory with value.
func decode(key, value []byte, id engine.MessageID) (engine.Record, error) {
	head, err := verify(key, value)
	if err != nil {
		return engine.Record{}, err
	}
	r := engine.Record{ID: id, PublishTime: head.publish}
	r.SchemaVersion = engine.NoSchema
	flags := value[4]
	u := unpacker{rest: append([]byte(nil), value[recordHeaderLen:]...)}
	if flags&hasKey != 0 {
		r.Key = u.str()
	}
	if flags&hasProperties != 0 {
		n := u.uint()
		if n > uint64(len(u.rest)) {
			u.fail()
			n = 0
		}
		r.Properties = make([]engine.Property, n)
		for i := range r.Properties {
			r.Properties[i] = engine.Property{Key: u.str(), Value: u.str()}
		}
	}
	if flags&hasEventTime != 0 {
		r.EventTime = u.int()
	}
	if flags&hasSchema != 0 {
		r.SchemaVersion = u.int()
	}
	if flags&hasProducer != 0 {
		r.Producer = u.str()
	}
	if flags&hasSequence != 0 {
		r.Sequence, r.HasSequence = u.uint(), true
	}
	if flags&hasDeliverAt != 0 {
		r.DeliverAt = u.int()
	}
	if flags&hasDedup != 0 {
		r.Dedup = engine.DedupKey{Producer: u.str(), Sequence: u.uint()}
	} else {
		r.Dedup = impliedDedup(&r.Message)
	}
	if u.err != nil {
		return engine.Record{}, corrupt(key, "record ends before its last field")
	}
	r.Payload = u.rest
	return r, nil
}
