package pebble

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"
	"time"

	"freshet/internal/storage/engine"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// addChecksum prepends a checksum of key and body to body.
func addChecksum(key, body []byte) []byte {
	sum := crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, body)
	value := make([]byte, 4, 4+len(body))
	binary.LittleEndian.PutUint32(value, sum)
	return append(value, body...)
}

// checkChecksum verifies the checksum that addChecksum wrote and returns the body.
func checkChecksum(key, value []byte) ([]byte, error) {
	if len(value) < 4 {
		return nil, corrupt(key, "value is too short for its checksum")
	}
	body := value[4:]
	sum := crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, body)
	if sum != binary.LittleEndian.Uint32(value) {
		return nil, corrupt(key, "checksum does not match")
	}
	return body, nil
}

func corrupt(key []byte, what string) error {
	return fmt.Errorf("%w: %s (key %x)", engine.ErrCorrupt, what, key)
}

// packer encodes the fields of a small value one after the other.
type packer []byte

func (p *packer) uint(v uint64)            { *p = binary.AppendUvarint(*p, v) }
func (p *packer) int(v int64)              { *p = binary.AppendVarint(*p, v) }
func (p *packer) duration(d time.Duration) { p.int(int64(d)) }

func (p *packer) str(s string) {
	p.uint(uint64(len(s)))
	*p = append(*p, s...)
}

func (p *packer) bool(b bool) {
	if b {
		p.uint(1)
	} else {
		p.uint(0)
	}
}

// unpacker decodes what a packer encoded. After the first error it returns zero values,
// and err is set.
type unpacker struct {
	rest []byte
	err  error
}

func (u *unpacker) fail() {
	if u.err == nil {
		u.err = fmt.Errorf("%w: value ends before its last field", engine.ErrCorrupt)
	}
	u.rest = nil
}

func (u *unpacker) uint() uint64 {
	v, n := binary.Uvarint(u.rest)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.rest = u.rest[n:]
	return v
}

func (u *unpacker) int() int64 {
	v, n := binary.Varint(u.rest)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.rest = u.rest[n:]
	return v
}

func (u *unpacker) duration() time.Duration { return time.Duration(u.int()) }
func (u *unpacker) bool() bool              { return u.uint() != 0 }

func (u *unpacker) bytes() []byte {
	n := u.uint()
	if n > uint64(len(u.rest)) {
		u.fail()
		return nil
	}
	b := u.rest[:n]
	u.rest = u.rest[n:]
	return b
}

func (u *unpacker) str() string { return string(u.bytes()) }

// topicValue is the stored configuration of a topic.
type topicValue struct {
	config  engine.TopicConfig
	nextSub uint32
}

func packTopic(v topicValue) []byte {
	var p packer
	c := v.config
	p.uint(uint64(v.nextSub))
	p.uint(uint64(c.Partitions))
	p.duration(c.RetainAge)
	p.int(c.RetainBytes)
	p.duration(c.TTL)
	p.int(c.BacklogBytes)
	p.bool(c.BacklogEvict)
	p.bool(c.Deduplicate)
	p.int(int64(c.MaxUnacked))
	p.bool(c.Terminated)
	return p
}

func unpackTopic(body []byte) (topicValue, error) {
	u := unpacker{rest: body}
	v := topicValue{nextSub: uint32(u.uint())}
	c := &v.config
	c.Partitions = int32(u.uint())
	c.RetainAge = u.duration()
	c.RetainBytes = u.int()
	c.TTL = u.duration()
	c.BacklogBytes = u.int()
	c.BacklogEvict = u.bool()
	c.Deduplicate = u.bool()
	c.MaxUnacked = int(u.int())
	c.Terminated = u.bool()
	return v, u.err
}

// headValue is the stored start of a partition.
type headValue struct {
	first       uint64 // first entry that is not trimmed
	cum         int64  // bytes ever written before it
	lastPublish int64  // newest publish time when the value was written
}

func packHead(v headValue) []byte {
	var p packer
	p.uint(v.first)
	p.int(v.cum)
	p.int(v.lastPublish)
	return p
}

func unpackHead(body []byte) (headValue, error) {
	u := unpacker{rest: body}
	v := headValue{first: u.uint(), cum: u.int(), lastPublish: u.int()}
	return v, u.err
}

func packSub(id uint32, c engine.SubscriptionConfig) []byte {
	var p packer
	p.uint(uint64(id))
	p.duration(c.Lease)
	p.uint(uint64(c.MaxDeliveries))
	p.uint(uint64(c.DeadLetterTopic))
	p.uint(uint64(len(c.Properties)))
	for _, k := range sortedKeys(c.Properties) {
		p.str(k)
		p.str(c.Properties[k])
	}
	return p
}

func unpackSub(body []byte) (id uint32, c engine.SubscriptionConfig, err error) {
	u := unpacker{rest: body}
	id = uint32(u.uint())
	c.Lease = u.duration()
	c.MaxDeliveries = uint32(u.uint())
	c.DeadLetterTopic = engine.TopicID(u.uint())
	n := u.uint()
	for i := uint64(0); i < n && u.err == nil; i++ {
		if c.Properties == nil {
			c.Properties = make(map[string]string)
		}
		k := u.str()
		c.Properties[k] = u.str()
	}
	return id, c, u.err
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
