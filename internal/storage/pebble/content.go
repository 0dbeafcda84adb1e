package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash"
	"sync"

	cdb "github.com/cockroachdb/pebble/v2"
)

// The copies of a shard have the same content at the same position of the log: every write of a store with
// an external log is a batch of that log, and compactions change no key or value that can be read. Only the
// key of the position itself is written by each member.

// Content is the content of a store with an external log at one position of the log. It is a snapshot of
// Pebble, which keeps replaced tables and versions of keys on the disk until it is closed, so its user has
// to close it soon. Closing the store closes it. A store has one Content at a time.
type Content struct {
	s       *store
	reached func(position []byte) bool

	taken chan struct{} // closed when view is set

	mu     sync.Mutex
	view   *cdb.Snapshot // nil before it is taken, and after Close
	closed bool
}

// AwaitContent returns a Content that is taken right after the first batch from now on is applied for whose
// position reached returns true. reached must be fast.
func (st *Store) AwaitContent(reached func(position []byte) bool) *Content {
	c := &Content{s: st.s, reached: reached, taken: make(chan struct{})}
	st.s.content.Store(c)
	return c
}

// offer takes the content if its position is reached. The only goroutine that applies batches calls it.
func (c *Content) offer(position []byte) {
	select {
	case <-c.taken:
	default:
		if c.reached(position) {
			c.Take()
		}
	}
}

// Taken returns a channel that is closed when the content was taken.
func (c *Content) Taken() <-chan struct{} { return c.taken }

// Take takes the present content, unless it was taken or closed before. The store must be open.
func (c *Content) Take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view == nil && !c.closed {
		c.view = c.s.db.NewSnapshot()
		close(c.taken)
	}
}

// Close releases the content. It may be called more than once.
func (c *Content) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.content.CompareAndSwap(c, nil)
	c.closed = true
	if c.view != nil {
		_ = c.view.Close() // never fails
		c.view = nil
	}
}

// open returns the snapshot, or an error when the content was not taken or is closed.
func (c *Content) open() (*cdb.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view == nil {
		return nil, errors.New("content of the store is not held")
	}
	return c.view, nil
}

// Position returns the position of the log that the content was taken at. The store must be open.
func (c *Content) Position() ([]byte, error) {
	view, err := c.open()
	if err != nil {
		return nil, err
	}
	key := []byte{keyLogPosition}
	value, closer, err := view.Get(key)
	if err != nil {
		return nil, c.s.recordStoreDamage(storeError(err))
	}
	defer closer.Close()
	body, err := checkChecksum(key, value)
	return bytes.Clone(body), c.s.recordStoreDamage(err)
}

// Sum adds the keys from a key on, with their values, to a checksum until it has added limit bytes or there
// are no more keys. It returns the last key that it has added, nil if there was none, and the number of keys
// and bytes. The store must be open.
func (c *Content) Sum(sum hash.Hash, from []byte, limit int64) (last []byte, keys, size int64, err error) {
	view, err := c.open()
	if err != nil {
		return nil, 0, 0, err
	}
	iter, err := view.NewIter(&cdb.IterOptions{LowerBound: from})
	if err != nil {
		return nil, 0, 0, c.s.recordStoreDamage(storeError(err))
	}
	defer iter.Close()
	var head [16]byte
	for ok := iter.First(); ok && size < limit; ok = iter.Next() {
		key := iter.Key()
		value, err := iter.ValueAndErr()
		if err != nil {
			return nil, 0, 0, c.s.recordStoreDamage(storeError(err))
		}
		last = append(last[:0], key...)
		if key[0] == keyLogPosition {
			continue
		}
		binary.BigEndian.PutUint64(head[:8], uint64(len(key)))
		binary.BigEndian.PutUint64(head[8:], uint64(len(value)))
		for _, part := range [][]byte{head[:], key, value} {
			_, _ = sum.Write(part) // never fails
		}
		keys++
		size += int64(len(key) + len(value))
	}
	return last, keys, size, c.s.iterError(iter)
}
