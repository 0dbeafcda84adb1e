package revision

import (
	"iter"
	"math"
)

// Forever is the revision of a deletion after which no report of the key is accepted.
const Forever = math.MaxInt64

// Map holds the newest value of each key. It is not safe for concurrent use.
type Map[K comparable, V any] struct {
	live    map[K]versioned[V]
	deleted *Tombstones[K]
}

type versioned[V any] struct {
	value    V
	revision int64
}

// NewMap returns an empty map that remembers a number of deletions.
func NewMap[K comparable, V any](tombstones int) *Map[K, V] {
	return &Map[K, V]{live: make(map[K]versioned[V]), deleted: NewTombstones[K](tombstones)}
}

// Accepts reports whether Put would accept a value of this revision.
func (m *Map[K, V]) Accepts(key K, revision int64) bool {
	return !m.deleted.Cover(key, revision) && (revision == 0 || revision >= m.live[key].revision)
}

// Put stores a value unless a newer report of its key is known, and reports whether it did.
func (m *Map[K, V]) Put(key K, revision int64, value V) bool {
	if !m.Accepts(key, revision) {
		return false
	}
	m.live[key] = versioned[V]{value, max(revision, m.live[key].revision)}
	return true
}

// Delete removes a key unless a newer report of it is known, and reports whether it did; a key
// without a value counts as removed. A deletion with revision 0 leaves no tombstone.
func (m *Map[K, V]) Delete(key K, revision int64) bool {
	if !m.Accepts(key, revision) {
		return false
	}
	delete(m.live, key)
	m.deleted.Add(key, revision)
	return true
}

// Get returns the value of a key.
func (m *Map[K, V]) Get(key K) (V, bool) {
	h, ok := m.live[key]
	return h.value, ok
}

// All iterates over all keys and values in no particular order. The loop body may delete the
// current key.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key, h := range m.live {
			if !yield(key, h.value) {
				return
			}
		}
	}
}

// Len returns the number of keys with a value.
func (m *Map[K, V]) Len() int { return len(m.live) }
