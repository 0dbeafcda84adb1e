// Package lru implements a cache with a size limit that evicts the least recently used entries.
//
// It does not expire entries by time and does not compute missing values: callers look up with
// Get, compute the value without a lock, and store it with Add. The token cache of package
// identity does not use it, because a hit there must not write to memory that other cores
// share.
//
// Cache.mu is the only lock of the package. It protects all fields of a Cache, and is a leaf: no
// callback runs under it.
package lru

import "sync"

// Cache maps keys to values and keeps the sum of their costs within a limit by evicting the
// least recently used entries. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu      sync.Mutex
	limit   int64
	cost    int64 // of all entries
	entries map[K]*entry[K, V]
	// ring is the sentinel of a circular list of the entries: next is the most recently used
	// entry, prev the least recently used one.
	ring entry[K, V]
}

type entry[K comparable, V any] struct {
	key        K
	value      V
	cost       int64
	prev, next *entry[K, V]
}

// New returns a cache with a limit for the sum of its entries' costs. When every entry costs 1,
// the limit is a number of entries.
func New[K comparable, V any](limit int64) *Cache[K, V] {
	c := &Cache[K, V]{limit: limit, entries: make(map[K]*entry[K, V])}
	c.ring.prev, c.ring.next = &c.ring, &c.ring
	return c
}

// Get returns the value of a key and marks it as the most recently used.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		var zero V
		return zero, false
	}
	c.touchLocked(e)
	return e.value, true
}

// Add stores a value for a key that has none, and returns it. When the key has a value already,
// Add returns that value, so that all users of a key share one. A value that costs more than
// the limit is returned and not stored. A cost below 1 counts as 1.
func (c *Cache[K, V]) Add(key K, value V, cost int64) V {
	cost = max(cost, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		c.touchLocked(e)
		return e.value
	}
	if cost > c.limit {
		return value
	}
	for c.cost > c.limit-cost {
		c.removeLocked(c.ring.prev)
	}
	e := &entry[K, V]{key: key, value: value, cost: cost}
	c.entries[key] = e
	c.cost += cost
	c.insertLocked(e)
	return value
}

// touchLocked makes e the most recently used entry. The caller holds mu.
func (c *Cache[K, V]) touchLocked(e *entry[K, V]) {
	e.prev.next, e.next.prev = e.next, e.prev
	c.insertLocked(e)
}

// insertLocked inserts e, which is not in the list, at its front. The caller holds mu.
func (c *Cache[K, V]) insertLocked(e *entry[K, V]) {
	e.prev, e.next = &c.ring, c.ring.next
	e.prev.next, e.next.prev = e, e
}

func (c *Cache[K, V]) removeLocked(e *entry[K, V]) {
	e.prev.next, e.next.prev = e.next, e.prev
	delete(c.entries, e.key)
	c.cost -= e.cost
}
