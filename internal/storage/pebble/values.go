package pebble

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"
	"time"

	"freshet/internal/base/wire"
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

// unpacker decodes the fields of a small value. Its error is a corruption of the store.
type unpacker struct{ wire.Reader }

func unpack(body []byte) unpacker { return unpacker{wire.NewReader(body)} }

// Err returns an ErrCorrupt if the value was not complete.
func (u *unpacker) Err() error {
	if u.Reader.Err() != nil {
		return fmt.Errorf("%w: value ends before its last field", engine.ErrCorrupt)
	}
	return nil
}

func (u *unpacker) duration() time.Duration { return time.Duration(u.Varint()) }

// topicValue is the stored configuration of a topic.
type topicValue struct {
	config  engine.TopicConfig
	nextSub uint32
}

func packTopic(v topicValue) []byte {
	var p wire.Writer
	c := v.config
	p.Uvarint(uint64(v.nextSub))
	p.Uvarint(uint64(c.Partitions))
	p.Varint(int64(c.RetainAge))
	p.Varint(c.RetainBytes)
	p.Varint(int64(c.TTL))
	p.Varint(c.BacklogBytes)
	p.Bool(c.BacklogEvict)
	p.Bool(c.Deduplicate)
	p.Varint(int64(c.MaxUnacked))
	p.Bool(c.Terminated)
	return p
}

func unpackTopic(body []byte) (topicValue, error) {
	u := unpack(body)
	v := topicValue{nextSub: uint32(u.Uvarint())}
	c := &v.config
	c.Partitions = int32(u.Uvarint())
	c.RetainAge = u.duration()
	c.RetainBytes = u.Varint()
	c.TTL = u.duration()
	c.BacklogBytes = u.Varint()
	c.BacklogEvict = u.Bool()
	c.Deduplicate = u.Bool()
	c.MaxUnacked = int(u.Varint())
	c.Terminated = u.Bool()
	return v, u.Err()
}

// headValue is the stored start of a partition.
type headValue struct {
	first       uint64 // first entry that is not trimmed
	cum         int64  // bytes ever written before it
	lastPublish int64  // newest publish time when the value was written
}

func packHead(v headValue) []byte {
	var p wire.Writer
	p.Uvarint(v.first)
	p.Varint(v.cum)
	p.Varint(v.lastPublish)
	return p
}

func unpackHead(body []byte) (headValue, error) {
	u := unpack(body)
	v := headValue{first: u.Uvarint(), cum: u.Varint(), lastPublish: u.Varint()}
	return v, u.Err()
}

func packSub(id uint32, c engine.SubscriptionConfig) []byte {
	var p wire.Writer
	p.Uvarint(uint64(id))
	p.Varint(int64(c.Lease))
	p.Uvarint(uint64(c.MaxDeliveries))
	p.Uvarint(uint64(c.DeadLetterTopic))
	p.Uvarint(uint64(len(c.Properties)))
	for _, k := range sortedKeys(c.Properties) {
		p.Text(k)
		p.Text(c.Properties[k])
	}
	if c.Filter != "" { // earlier versions neither wrote nor read it
		p.Text(c.Filter)
	}
	return p
}

func unpackSub(body []byte) (id uint32, c engine.SubscriptionConfig, err error) {
	u := unpack(body)
	id = uint32(u.Uvarint())
	c.Lease = u.duration()
	c.MaxDeliveries = uint32(u.Uvarint())
	c.DeadLetterTopic = engine.TopicID(u.Uvarint())
	n := u.Uvarint()
	for i := uint64(0); i < n && u.Err() == nil; i++ {
		if c.Properties == nil {
			c.Properties = make(map[string]string)
		}
		k := u.Text()
		c.Properties[k] = u.Text()
	}
	if u.Len() > 0 {
		c.Filter = u.Text()
	}
	return id, c, u.Err()
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
