package revision

// Tombstones remember the last deletions. They are not safe for concurrent use.
type Tombstones[K comparable] struct {
	revisions map[K]int64
	ring      []K // in the order of deletion, once it is full from next on
	limit     int
	next      int
}

// NewTombstones makes a memory of so many deletions.
func NewTombstones[K comparable](limit int) *Tombstones[K] {
	return &Tombstones[K]{revisions: make(map[K]int64), limit: limit}
}

// Add notes that a key was deleted at a revision. When there are too many, the
// oldest is forgotten.
func (t *Tombstones[K]) Add(key K, revision int64) {
	if revision == 0 || t.limit == 0 {
		return
	}
	known, ok := t.revisions[key]
	t.revisions[key] = max(known, revision)
	switch {
	case ok:
	case len(t.ring) < t.limit:
		t.ring = append(t.ring, key)
	default:
		delete(t.revisions, t.ring[t.next])
		t.ring[t.next] = key
		t.next = (t.next + 1) % t.limit
	}
}

// Cover reports whether a report of this revision comes too late: its key was
// deleted after it.
func (t *Tombstones[K]) Cover(key K, revision int64) bool {
	deleted := t.revisions[key]
	return deleted == Forever || (revision != 0 && revision < deleted)
}
