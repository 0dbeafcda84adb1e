// Package lru owns the one cache of bounded size that forgets what was used
// longest ago.
//
// It does not expire entries by time and does not compute missing values:
// callers ask with Get, make the value without a lock held, and hand it over
// with Add. The token cache of package identity is not built on it: a hit there
// must not write to memory that other cores share.
package lru

import "sync"

// Cache maps keys to values and keeps the sum of their costs within a limit;
// the least recently used entries leave first. It may be used from several
// goroutines at once: mu guards everything, and no callback runs under it.
type Cache[K comparable, V any] struct {
	mu      sync.Mutex
	limit   int64
	cost    int64 // of all entries
	entries map[K]*entry[K, V]
	// ring closes the list of entries into a circle: next is the most recently
	// used entry, prev the least recently used one.
	ring entry[K, V]
}

type entry[K comparable, V any] struct {
	key        K
	value      V
	cost       int64
	prev, next *entry[K, V]
}

// New makes a cache that holds entries up to a sum of costs. Where every entry
// costs 1 the limit is a number of entries.
func New[K comparable, V any](limit int64) *Cache[K, V] {
	c := &Cache[K, V]{limit: limit, entries: make(map[K]*entry[K, V])}
	c.ring.prev, c.ring.next = &c.ring, &c.ring
	return c
}

// Get returns the value of a key and counts as a use of it.
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

// Add puts in a value under a key that has none and returns it. Where somebody
// else was faster it returns the value that is there, so that all users of a
// key share one. A value that costs more than the whole limit is returned and
// not kept. A cost below 1 counts as 1.
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

// touchLocked makes e the most recently used entry.
func (c *Cache[K, V]) touchLocked(e *entry[K, V]) {
	e.prev.next, e.next.prev = e.next, e.prev
	c.insertLocked(e)
}

// insertLocked links e, which is not in the list, to its front.
func (c *Cache[K, V]) insertLocked(e *entry[K, V]) {
	e.prev, e.next = &c.ring, c.ring.next
	e.prev.next, e.next.prev = e, e
}

func (c *Cache[K, V]) removeLocked(e *entry[K, V]) {
	e.prev.next, e.next.prev = e.next, e.prev
	delete(c.entries, e.key)
	c.cost -= e.cost
}
