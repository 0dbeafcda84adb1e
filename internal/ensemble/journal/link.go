package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"freshet/internal/storage/engine"
)

// sumHeader carries the link before the first record of a message. It is a header and not a part of
// the message's body, so that members of earlier versions read the message: they ignore the header.
const sumHeader = "Freshet-Sum"

const (
	sumBytes  = 16
	linkBytes = 8 + sumBytes
	// genesis is the chain of a journal that was read from its first record on.
	genesis = 1
)

// link is the rolling sum of a journal up to a record: a hash of that record, its position and the
// link before it. It does not depend on how records are grouped into messages, so it exists at every
// position, also within messages of versions that wrote no sum.
//
// chain identifies the start of the sums: the first record, or a snapshot that an earlier version
// saved without a link. Links of different chains cannot be compared. The zero link is unknown.
type link struct {
	chain uint64
	sum   [sumBytes]byte
}

func (l link) known() bool { return l.chain != 0 }

// contradicts reports whether two links at the same position prove that the records differ.
func (l link) contradicts(other link) bool { return l.chain == other.chain && l.known() && l != other }

// next returns the link after a record.
func (l link) next(position uint64, record []byte) link {
	var head [linkBytes + 8]byte
	binary.BigEndian.PutUint64(head[:], l.chain)
	copy(head[8:], l.sum[:])
	binary.BigEndian.PutUint64(head[linkBytes:], position)
	h := sha256.New()
	h.Write(head[:])
	h.Write(record)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return link{l.chain, [sumBytes]byte(sum[:sumBytes])}
}

// encode appends the link to b.
func (l link) encode(b []byte) []byte {
	return append(binary.BigEndian.AppendUint64(b, l.chain), l.sum[:]...)
}

func decodeLink(b []byte) link {
	return link{binary.BigEndian.Uint64(b), [sumBytes]byte(b[8:linkBytes])}
}

// String returns the link in hexadecimal digits; "" when it is unknown.
func (l link) String() string {
	if !l.known() {
		return ""
	}
	return hex.EncodeToString(l.encode(nil))
}

// parseLink parses the text of a link. The empty text is the unknown link.
func parseLink(text string) (link, error) {
	if text == "" {
		return link{}, nil
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != linkBytes {
		return link{}, fmt.Errorf("%w: %q is not the sum of a journal", engine.ErrCorrupt, text)
	}
	return decodeLink(b), nil
}

// base returns the link at the position of a snapshot: the link that its writer recorded. A snapshot
// of an earlier version has none, so a new chain starts, which is the same for all readers.
func (p *snapshotPointer) base() (link, error) {
	if p.Position == 0 {
		return link{chain: genesis}, nil
	}
	if p.Sum != "" {
		return parseLink(p.Sum)
	}
	start := sha256.Sum256([]byte(p.SHA256 + " " + strconv.FormatUint(p.Position, 10)))
	return link{binary.BigEndian.Uint64(start[:]) | 2, [sumBytes]byte(start[8:])}, nil // never unknown, never genesis
}

// after returns the link after the last record of the message, given the one before its first.
func (m *message) after(before link) (link, error) {
	err := m.records(0, func(position uint64, record []byte) error {
		before = before.next(position, record)
		return nil
	})
	return before, err
}

// links caches the links at the ends of the latest messages that this member read or wrote.
type links struct {
	mu    sync.Mutex
	at    map[uint64]link // by position; protected by mu
	order []uint64        // the positions, in the order of their arrival; protected by mu
}

func newLinks() *links { return &links{at: map[uint64]link{}} }

// get returns the link at a position; the unknown link if it is not cached.
func (c *links) get(position uint64) link {
	if position == 0 {
		return link{chain: genesis}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[position]
}

func (c *links) put(position uint64, l link) {
	if position == 0 || !l.known() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.at[position]; !known {
		c.order = append(c.order, position)
	}
	c.at[position] = l
	if len(c.order) > maxIndexEntries {
		for _, old := range c.order[:maxIndexEntries/2] {
			delete(c.at, old)
		}
		c.order = append([]uint64(nil), c.order[maxIndexEntries/2:]...)
	}
}

// cut forgets the links after a position.
func (c *links) cut(position uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order = slices.DeleteFunc(c.order, func(at uint64) bool { return at > position })
	maps.DeleteFunc(c.at, func(at uint64, _ link) bool { return at > position })
}

// follow verifies that a message continues the records that this member has read, and caches the link
// at its end. A message of a version that wrote no sum continues anything.
func (c *links) follow(m *message) error {
	before := c.get(m.first - 1)
	if m.before.contradicts(before) {
		return &lossError{fmt.Sprintf("record at position %d does not continue the records before it: "+
			"its sum is %s, but theirs is %s", m.first, m.before, before)}
	}
	if !before.known() {
		before = m.before
	}
	if !before.known() {
		return nil
	}
	after, err := m.after(before)
	if err == nil {
		c.put(m.last(), after)
	}
	return err
}
