package pebble

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

const (
	blockEntries  = 256 // entries in one block of acknowledgements
	blockWords    = blockEntries / 64
	blockValueLen = 8*blockWords + 8
	cursorLen     = 8 + 8
)

// cursor is a subscription's progress in one partition: every entry below floor is
// acknowledged, and acknowledged entries above it have a bit in a block. Protected by
// subscription.mu, which the callers of its methods hold.
type cursor struct {
	sub  *subscription
	part *partition

	floor  uint64
	acked  int64  // bytes ever acknowledged, including everything before the floor
	above  uint64 // acknowledged entries at or above floor
	blocks map[uint64]*block

	next  uint64           // first entry that was not considered for delivery yet
	items map[uint64]*item // unacknowledged entries below next, by entry
	ready itemHeap         // items to be delivered again, by entry

	counts map[uint64]uint32 // stored delivery counts, by entry

	savedIn    *commitBatch
	writeIndex int

	oldestSeen oldestMessage // the first message of the backlog at the last call of Usage
}

// block is a bitmap of acknowledged entries.
type block struct {
	words  [blockWords]uint64
	bytes  int64 // of the entries with a bit
	stored bool  // in the store, or in a commit batch that is not applied yet

	savedIn    *commitBatch
	writeIndex int
}

func (b *block) has(entry uint64) bool {
	i := entry % blockEntries
	return b.words[i/64]&(1<<(i%64)) != 0
}

func (b *block) set(entry uint64) {
	i := entry % blockEntries
	b.words[i/64] |= 1 << (i % 64)
}

// countFrom counts the bits at or above entry, which lies in the block.
func (b *block) countFrom(entry uint64) (n int) {
	i := entry % blockEntries
	for w := int(i / 64); w < blockWords; w++ {
		word := b.words[w]
		if w == int(i/64) {
			word &= ^uint64(0) << (i % 64)
		}
		n += bits.OnesCount64(word)
	}
	return n
}

// nextClear returns the first entry at or above entry without a bit, which may
// be the first of the next block.
func (b *block) nextClear(entry uint64) uint64 {
	start := entry - entry%blockEntries
	for i := entry % blockEntries; i < blockEntries; {
		free := ^b.words[i/64] >> (i % 64)
		if free != 0 {
			return start + i + uint64(bits.TrailingZeros64(free))
		}
		i += 64 - i%64
	}
	return start + blockEntries
}

func (c *cursor) isAckedLocked(entry uint64) bool {
	if entry < c.floor {
		return true
	}
	b := c.blocks[entry/blockEntries]
	return b != nil && b.has(entry)
}

// backlogLocked counts the durable messages not acknowledged.
func (c *cursor) backlogLocked() uint64 {
	durable := c.part.durable.Load()
	if durable < c.floor {
		return 0
	}
	return durable - c.floor - c.above
}

// ackLocked acknowledges an entry of size bytes and adds the change to the commit batch. The
// entry must not be acknowledged yet. The caller also holds committer.mu, as for all
// methods with a batch.
func (c *cursor) ackLocked(g *commitBatch, entry uint64, size int64) {
	c.forgetLocked(g, entry)
	c.acked += size
	c.sub.acked.Add(size)
	if entry == c.floor {
		c.floor++
		c.advanceLocked(g)
	} else {
		n := entry / blockEntries
		b := c.blocks[n]
		if b == nil {
			if c.blocks == nil {
				c.blocks = make(map[uint64]*block)
			}
			b = new(block)
			c.blocks[n] = b
		}
		b.set(entry)
		b.bytes += size
		c.above++
		c.saveBlockLocked(g, n, b)
	}
	c.saveLocked(g)
}

// advanceLocked moves the floor over entries that are acknowledged already.
func (c *cursor) advanceLocked(g *commitBatch) {
	for c.above > 0 {
		n := c.floor / blockEntries
		b := c.blocks[n]
		if b == nil {
			break
		}
		clear := b.nextClear(c.floor)
		if clear == c.floor {
			break
		}
		c.above -= clear - c.floor
		c.floor = clear
		if clear/blockEntries != n {
			c.dropBlockLocked(g, n, b)
		}
	}
	if c.floor%blockEntries == 0 && c.floor > 0 {
		n := c.floor/blockEntries - 1
		if b := c.blocks[n]; b != nil {
			c.dropBlockLocked(g, n, b)
		}
	}
}

// moveToLocked moves the floor forward; acked are the bytes that are acknowledged then.
// Acknowledgements above the floor stay.
func (c *cursor) moveToLocked(g *commitBatch, floor uint64, acked int64) {
	if floor <= c.floor {
		return
	}
	for entry := range c.items {
		if entry < floor {
			c.forgetLocked(g, entry)
		}
	}
	if len(c.counts) > 0 {
		id, sub, part := c.part.topic.id, c.sub.id, c.part.index
		g.deleteRangeLocked(cursorKey(ofCount, id, sub, part), cursorEntryKey(ofCount, id, sub, part, floor))
		for entry := range c.counts {
			if entry < floor {
				delete(c.counts, entry)
			}
		}
	}
	for n, b := range c.blocks {
		start := n * blockEntries
		switch {
		case start+blockEntries <= floor:
			c.above -= uint64(b.countFrom(max(start, c.floor)))
			c.dropBlockLocked(g, n, b)
		case start < floor:
			c.above -= uint64(b.countFrom(max(start, c.floor)) - b.countFrom(floor))
		}
	}
	c.sub.acked.Add(acked - c.acked)
	c.floor, c.acked = floor, acked
	c.next = max(c.next, floor)
	c.advanceLocked(g)
	c.saveLocked(g)
}

// resetLocked moves the floor to any entry and discards the acknowledgements above it.
func (c *cursor) resetLocked(g *commitBatch, floor uint64, acked int64) {
	c.cancelWritesLocked(g)
	id, sub, part := c.part.topic.id, c.sub.id, c.part.index
	for _, kind := range []byte{ofAcks, ofCount} {
		prefix := cursorKey(kind, id, sub, part)
		g.deleteRangeLocked(prefix, after(prefix))
	}
	for _, it := range c.items {
		c.sub.dropLocked(it)
	}
	c.items, c.ready, c.blocks, c.counts, c.above = nil, nil, nil, nil, 0
	c.sub.acked.Add(acked - c.acked)
	c.floor, c.acked, c.next = floor, acked, floor
	c.saveLocked(g)
}

// forgetLocked discards the entry's item and delivery count.
func (c *cursor) forgetLocked(g *commitBatch, entry uint64) {
	if it := c.items[entry]; it != nil {
		c.sub.dropLocked(it)
		delete(c.items, entry)
	}
	if _, ok := c.counts[entry]; ok {
		delete(c.counts, entry)
		g.deleteLocked(cursorEntryKey(ofCount, c.part.topic.id, c.sub.id, c.part.index, entry))
	}
}

// saveLocked adds the floor to the commit batch, once however often it moves.
func (c *cursor) saveLocked(g *commitBatch) {
	if c.savedIn != g {
		c.savedIn, c.writeIndex = g, len(g.coalesced)
		g.coalesced = append(g.coalesced, coalescedWrite{})
		s := &g.coalesced[c.writeIndex]
		putCursorKey(s, ofCursor, c)
		s.vlen = cursorLen
		g.pinLocked(c.part.topic)
	}
	s := &g.coalesced[c.writeIndex]
	binary.LittleEndian.PutUint64(s.val[:], c.floor)
	binary.LittleEndian.PutUint64(s.val[8:], uint64(c.acked))
	c.sub.changedIn = g
}

func (c *cursor) saveBlockLocked(g *commitBatch, n uint64, b *block) {
	s := c.blockWriteLocked(g, n, b)
	b.stored = true
	s.vlen = blockValueLen
	for i, w := range b.words {
		binary.LittleEndian.PutUint64(s.val[8*i:], w)
	}
	binary.LittleEndian.PutUint64(s.val[8*blockWords:], uint64(b.bytes))
}

func (c *cursor) dropBlockLocked(g *commitBatch, n uint64, b *block) {
	delete(c.blocks, n)
	if b.stored {
		c.blockWriteLocked(g, n, b).vlen = 0
	}
}

func (c *cursor) blockWriteLocked(g *commitBatch, n uint64, b *block) *coalescedWrite {
	if b.savedIn != g {
		b.savedIn, b.writeIndex = g, len(g.coalesced)
		g.coalesced = append(g.coalesced, coalescedWrite{})
		s := &g.coalesced[b.writeIndex]
		putCursorKey(s, ofAcks, c)
		binary.BigEndian.PutUint64(s.key[cursorKeyLen:], n)
		s.klen = cursorEntryKeyLen
		g.pinLocked(c.part.topic)
	}
	return &g.coalesced[b.writeIndex]
}

func putCursorKey(s *coalescedWrite, kind byte, c *cursor) {
	s.key[0] = keyTopic
	binary.BigEndian.PutUint64(s.key[1:], uint64(c.part.topic.id))
	s.key[topicPrefixLen] = kind
	binary.BigEndian.PutUint32(s.key[kindLen:], c.sub.id)
	binary.BigEndian.PutUint32(s.key[kindLen+4:], uint32(c.part.index))
	s.klen = cursorKeyLen
}

// cancelWritesLocked removes the cursor's writes from the commit batch.
func (c *cursor) cancelWritesLocked(g *commitBatch) {
	prefix := cursorKey(ofAcks, c.part.topic.id, c.sub.id, c.part.index)
	for i := range g.coalesced {
		s := &g.coalesced[i]
		if s.klen == cursorEntryKeyLen && string(s.key[:cursorKeyLen]) == string(prefix) {
			s.cancelled = true
		}
	}
	if c.savedIn == g {
		g.coalesced[c.writeIndex].cancelled = true
		c.savedIn = nil
	}
}

// restoreBlockLocked restores one stored block.
func (c *cursor) restoreBlockLocked(key, body []byte) error {
	if len(body) != blockValueLen {
		return corrupt(key, fmt.Sprintf("block of acknowledgements has %d bytes, want %d", len(body), blockValueLen))
	}
	n := binary.BigEndian.Uint64(key[cursorKeyLen:])
	start := n * blockEntries
	if start+blockEntries <= c.floor {
		return nil
	}
	b := &block{stored: true}
	for i := range b.words {
		b.words[i] = binary.LittleEndian.Uint64(body[8*i:])
	}
	b.bytes = int64(binary.LittleEndian.Uint64(body[8*blockWords:]))
	if c.blocks == nil {
		c.blocks = make(map[uint64]*block)
	}
	c.blocks[n] = b
	c.above += uint64(b.countFrom(max(start, c.floor)))
	return nil
}
